-- Tends jobs that foreign actors have started: notes their ends, and puts back jobs that ran past
-- their timeout.
--
-- ARGV: 1 default timeout in s  2 margin beyond a timeout in ms
--       3 interval of looks at a job in ms  4 crash limit  5 retention
-- returns { ended by their actors, put back, ended here, notes on jobs }
-- needs: wrong_type time names routing job owner attempts sweep notes counters index events queue_front ending illegal dependents foreign_end

local default_s, margin_us, every_us = tonumber(ARGV[1]), tonumber(ARGV[2]) * 1000,
  tonumber(ARGV[3]) * 1000
local crash_limit, retention = tonumber(ARGV[4]), ARGV[5]
local left = 250
local TIMEOUT_S_MAX = 366 * 86400
local at = now_us()
local noticed, put_back, given_up, ended = 0, 0, 0, {}
despite_full_memory()

local function give_up(id, script_type, f, text, is_dead)
  local job = { script_type = script_type, reply = f[9], unique_key = f[10], retention = f[14],
    is_dead = is_dead }
  end_job(id, job, 'error', text, nil, at, retention)
  if present(f[11]) then ended[#ended + 1] = { id = id, status = 'error', dependents = f[11] } end
  note(id, script_type, 'ended in error: ' .. text .. (is_dead and '; it is a dead letter' or ''))
  given_up = given_up + 1
end

local function overdue(id, script_type, f)
  redis.call('ZREM', index_of('started', script_type), id)
  local queue = queue_of(present(f[4]) or script_type, f[5], f[6], f[7], f[15])
  if present(f[13]) then return give_up(id, script_type, f, 'stopped_by_request') end
  local crashes = (tonumber(f[8]) or 0) + 1
  redis.call('HSET', JOB .. id, 'crashes', crashes)
  if not queue then
    give_up(id, script_type, f, illegal_text(present(f[4]) or script_type, f[5], f[6], f[7], f[15]))
  elseif crashes >= crash_limit then
    give_up(id, script_type, f, 'crashed: ' .. crashes .. ' actors died running it', true)
    add_dead_letter(id, script_type)
  else
    note_attempt(id, 'crashed', nil, rfc3339(at))
    log_event(id, 'dispatched')
    redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
    redis.call('HDEL', JOB .. id, 'started_at')
    push_front(id, queue, at)
    count(script_type, 'recovered')
    put_back = put_back + 1
    note(id, script_type, 'goes back to the front of queue ' .. queue
      .. ': its foreign actor exceeded its timeout; crash ' .. crashes .. ' of ' .. crash_limit)
  end
end

for _, script_type in ipairs(some_types(at)) do
  local index = index_of('started', script_type)
  local ids = redis.call('ZRANGEBYSCORE', index, '-inf', integer(at), 'LIMIT', 0, left)
  left = left - #ids
  for _, id in ipairs(ids) do
    local f = read(id, 'status', 'started_at', 'timeout', 'script_type', 'group', 'instance',
      'priority', 'crashes', 'reply', 'unique_key', 'dependents', 'boot_id', 'stop_requested',
      'retention', 'where')
    if f[1] == 'finished' or f[1] == 'error' then
      redis.call('ZREM', index, id)
      note_foreign_end(id, script_type, at, retention)
      noticed = noticed + 1
    elseif f[1] ~= 'started' or is_ours(id, f[12]) then
      redis.call('ZREM', index, id)
    else
      local began = microseconds(f[2])
      -- `inf` and `nan` would never be over.
      local timeout = string.match(f[3] or '', '^%d+%.?%d*$')
      local allowed = math.min(tonumber(timeout or default_s), TIMEOUT_S_MAX) * 1000000 + margin_us
      if began > 0 and at - began > allowed then
        overdue(id, script_type, f)
      else
        if began == 0 then redis.call('HSET', JOB .. id, 'started_at', rfc3339(at)) end
        redis.call('ZADD', index, integer(at + every_us), id)
      end
    end
  end
end
if #ended > 0 then tell_dependents(ended, at, retention) end
write_counts()
return { noticed, put_back, given_up, notes }
