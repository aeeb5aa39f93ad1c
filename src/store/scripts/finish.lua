-- Records how attempts ended, each only while its job is in the boot's running set since the claim of
-- that attempt: this is the fence. An actor that lost its lease writes nothing, and a call that arrives
-- late does not end the next attempt, which the same boot may run.
--
-- ARGV: 1 boot  2 retention  3 number of attempts
--       4 'hold' if the reply of every job waits until `push_replies` is called, '' if only replies of jobs whose
--       field `durable` says so do; then for each attempt:
--       id, time of the claim in us, script type of the actor,
--       'finished' | 'apart' | 'error' | 'dead' | 'retry' | 'postpone' | 'wait', output, error or the wait as
--       JSON, exit code or '', for the last three the delay in us, '' or its usage of resources and missing log lines: lines of
--       FIELD=VALUE, the reply as JSON for an output that is long or not UTF-8, else '',
--       number of counters of its type that it adds to, these: counter, number
--       ('dead' is an error of a job that used up its attempts; 'apart' means finished, with an output
--       that its actor has staged under a key of its own: nothing large goes through a script)
-- returns for each: 'ok', 'held' if its reply waits, 'lost' if the boot no longer owns the job, 'done' if the end of this attempt
--       was recorded before, or an error; nothing was done for 'stage', if the output apart is to be
--       staged first, nor for 'stage json' and 'stage plain', if its reply in this format is too; then
--       'more' if `settle` has dependents to tell, or callbacks of a graph to start
-- needs: wrong_type time names routing job owner counters index events ending
-- rarely: attempts queue dependents limits waits begin_wait windows

local boot, retention = ARGV[1], ARGV[2]
local at = now_us()
local results, ended = {}, {}
local concluded = {}
-- The entries of the indexes, written together: by their keys, scores and ids.
local entries = {}
local calls_back = false
-- One call in sixteen per job removes expired entries, more of them than so many jobs leave.
local trims = at % 16 < tonumber(ARGV[3])
-- The counter stays a number that every reader takes.
local POSTPONED_MAX = 1000000000

-- Lets the job run again later. A postponed job has lost no attempt.
local function run_later(id, script_type, kind, text, exit_code, delay_us)
  local due, is_postponed, wait = at + delay_us, kind ~= 'retry', kind == 'wait' and text
  if wait then text = 'waits: ' .. wait end
  local started_at = present(read(id, 'started_at')[1])
  if started_at then redis.call('HSETNX', JOB .. id, 'first_started_at', started_at) end
  rarely().note_attempt(id, is_postponed and 'postponed' or 'error', text, rfc3339(at))
  if is_postponed then
    local counter = wait and 'waits' or 'postponed'
    local f = read(id, 'attempt', counter)
    redis.call('HSET', JOB .. id, 'attempt', math.max((tonumber(f[1]) or 1) - 1, 0),
      counter, math.min(tonumber(f[2]) or 0, POSTPONED_MAX) + 1)
  end
  local event, look = nil, due
  if wait then event, look = rarely().begin_wait(id, wait, due, at) end
  if wait and not event then redis.call('ZADD', index_of('waits', script_type), integer(due), id) end
  log_event(id, 'scheduled', script_type)
  redis.call('HSET', JOB .. id, 'status', 'scheduled', 'error', text, 'updated_at', rfc3339(at),
    'run_at', rfc3339(due))
  if wait then redis.call('HDEL', JOB .. id, 'error') end
  if present(exit_code) then redis.call('HSET', JOB .. id, 'exit_code', exit_code) end
  if look then enter('scheduled', script_type, id, look) end
  count(script_type, is_postponed and 'postponed' or 'retried')
  -- What it waits for has come already, or nobody would find it there.
  if event or has_wrong_type[index_of('scheduled', script_type)] then
    local f = read(id, 'group', 'instance', 'priority', 'where')
    local queue = queue_of(script_type, f[1], f[2], f[3], f[4]) or 'type:' .. script_type
    if wait then return rarely().wake_waiting(id, script_type, queue, event or rarely().timeout_event(json_table(wait) or {}, at), at) end
    redis.call('HSET', JOB .. id, 'status', 'dispatched')
    redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id')
    rarely().push_back(id, queue, at)
  end
end

-- Replaces the usage of an earlier attempt.
local function note_usage(id, ran_before, used)
  if ran_before then redis.call('HDEL', JOB .. id, 'cpu_time', 'memory_peak', 'signal', 'limit',
    'log_missing', 'output_truncated', 'output_files', 'files_not_kept') end
  local fields = {}
  for name, value in string.gmatch(used, '([^=\n]+)=([^\n]*)\n') do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if #fields > 0 then redis.call('HSET', JOB .. id, unpack(fields)) end
end

-- Notes the events that a job was told and has not read at its end.
local function note_unread(id, script_type, told)
  local names = {}
  for name in string.gmatch(told, '"event":"([^"\\]+)"') do names[#names + 1] = name end
  note_end(id, script_type, table.concat(names, ', '), 'ended without having waited for what it was told: ')
end

-- The key of a staged output; with ':reply' after it, the key of its reply.
local function staged(id, claimed_at) return OUTPUT .. id .. ':' .. boot .. ':' .. claimed_at end

-- Returns the parts to stage before the end of an attempt with an output apart; nil if all are staged.
local function to_stage(id, key)
  local f = read(id, 'reply', 'reply_format')
  local is_plain = string.lower(present(f[2]) or REPLY_FORMAT) == 'plain'
  local what = says_no(f[1]) and 'stage' or is_plain and 'stage plain' or 'stage json'
  -- An access list of an older version does not permit the keys.
  local function exists(name) return redis.pcall('EXISTS', name) == 1 end
  return not (exists(key) and (what == 'stage' or exists(key .. ':reply'))) and what or nil
end

-- Gives a job its staged output, and the reply with it, if one is wanted. Returns the key of the output.
local function take_output(id, key, job)
  local ttl_s = '60'
  local reply = job.holds and OUTPUT .. id .. ':held' or REPLY .. id
  redis.call('RENAME', key, OUTPUT .. id)
  -- The output of an earlier run that another program has repeated.
  redis.call('HDEL', JOB .. id, 'output')
  if not says_no(job.reply) then
    -- This wakes those who wait, as a push does.
    redis.call('RENAME', key .. ':reply', reply)
    redis.call('EXPIRE', reply, ttl_s)
  end
  job.is_apart, job.reply = true, '0'
  return OUTPUT .. id
end

-- The machine of the boot. An access list of an older version does not permit the key.
local hostname = redis.pcall('HGET', BOOT_HOSTS, boot)
hostname = type(hostname) == 'string' and present(hostname)

-- Where the attempts begin in ARGV; the fence's answer for each: 'owned', 'again' if the boot has claimed
-- its job again after that claim, or the parts to stage first.
local attempts, fence = {}, {}
do
  local ids, own, a = {}, {}, 5
  for number = 1, tonumber(ARGV[3]) do
    attempts[number], ids[number] = a, ARGV[a]
    a = a + 10 + 2 * ARGV[a + 9]
  end
  local scores, seen = redis.call('ZMSCORE', RUNNING .. boot, unpack(ids)), {}
  for number, id in ipairs(ids) do
    local score, b = tonumber(scores[number] or nil), attempts[number]
    if score and score > tonumber(ARGV[b + 1]) then
      fence[number] = 'again'
    elseif ARGV[b + 3] == 'apart' and (score or has_wrong_type[RUNNING .. boot]) then
      fence[number] = to_stage(id, staged(id, ARGV[b + 1]))
    end
    if score and not fence[number] and not seen[id] then
      fence[number], seen[id], own[#own + 1] = 'owned', true, id
    end
  end
  if #own > 0 then redis.call('ZREM', RUNNING .. boot, unpack(own)) end
end

local function finish(number)
  local a = attempts[number]
  local id, fallback_type, kind, text, exit_code, delay_us, used, ready_reply = ARGV[a], ARGV[a + 2],
    ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], tonumber(ARGV[a + 6]) or 0, ARGV[a + 7], ARGV[a + 8]
  if fence[number] == 'again' then return 'done' end
  if fence[number] and fence[number] ~= 'owned' then return fence[number] end
  local runs_again = kind == 'retry' or kind == 'postpone' or kind == 'wait'
  if not (fence[number] or has_wrong_type[RUNNING .. boot] and disown(boot, id)) then
    local f = read(id, 'status', 'boot_id')
    local moved_on = f[1] == 'finished' or f[1] == 'error'
      or runs_again and (f[1] == 'scheduled' or f[1] == 'dispatched')
    if not (moved_on and f[2] == boot) then return 'lost' end
    return redis.pcall('EXISTS', OUTPUT .. id .. ':held') == 1 and 'held' or 'done'
  end
  local f = read(id, 'script_type', 'reply', 'unique_key', 'dependents', 'status', 'attempt',
    'retention', 'limits', 'postponed', 'input_files', 'output_files', 'graph_id', 'reply_format',
    'durable', 'cron', 'kept_state_at', 'waits', 'stop_requested', 'told_events')
  if not f[5] then return 'lost' end
  if present(f[8]) then rarely().leave_limits(id, f[8], at) end
  local script_type = legal_type(f[1]) or fallback_type
  for counter = a + 10, a + 8 + 2 * ARGV[a + 9], 2 do
    count(script_type, ARGV[counter], tonumber(ARGV[counter + 1]))
  end
  -- Then the exit code and the error in the hash belong to an earlier attempt.
  local ran_before = f[6] ~= '1' or present(f[9]) or present(f[17])
  if ran_before and not present(exit_code) then redis.call('HDEL', JOB .. id, 'exit_code') end
  if ran_before or used ~= '' then note_usage(id, ran_before, used) end
  if runs_again and present(f[18]) then
    kind, text, runs_again = 'error', 'stopped_by_request', false
  end
  if kind == 'error' and text == 'stopped_by_request' and legal_id(f[12]) then
    text = rarely().error_of_started(id, f[12]) or text
  end
  local why_stopped = runs_again and legal_id(f[12]) and rarely().error_of_stopped(id, f[12])
  if why_stopped then
    if kind ~= 'retry' then text = why_stopped end
    kind, runs_again = 'error', false
  end
  if runs_again then
    run_later(id, script_type, kind, text, exit_code, delay_us)
    return 'ok'
  end
  local status = (kind == 'finished' or kind == 'apart') and 'finished' or 'error'
  if status == 'finished' and ran_before then
    redis.call('HDEL', JOB .. id, 'error')
  end
  -- No attempt follows that would need it.
  if status == 'finished' and f[16] then redis.call('HDEL', JOB .. id, 'kept_state', 'kept_state_at') end
  local job = { script_type = script_type, reply = f[2], unique_key = f[3], retention = f[7],
    ready_reply = present(ready_reply), graph_id = f[12], cron = f[15], reply_format = f[13], entries = entries,
    is_dead = kind == 'dead', hostname = hostname,
    holds = not says_no(f[2]) and (ARGV[4] == 'hold' or present(f[14]) and not says_no(f[14])) or false,
    has_files = (f[10] or f[11] or string.find(used, 'output_files=', 1, true)) and true or false }
  if status == 'finished' and kind == 'apart' then text = take_output(id, staged(id, ARGV[a + 1]), job) end
  if end_job(id, job, status, text, exit_code, at, retention) then calls_back = true end
  if present(f[19]) then note_unread(id, script_type, f[19]) end
  if trims then concluded[status .. ' ' .. script_type] = { status, script_type } end
  if kind == 'dead' then add_dead_letter(id, script_type) end
  if present(f[4]) then ended[#ended + 1] = { id = id, status = status, dependents = f[4] } end
  return job.holds and 'held' or 'ok'
end

for number = 1, tonumber(ARGV[3]) do
  local ok, result = pcall(finish, number)
  if not ok then result = type(result) == 'table' and result.err or tostring(result) end
  results[number] = result
end
for index, of_index in pairs(entries) do redis.call('ZADD', index, unpack(of_index)) end
local more = #ended > 0 and rarely().tell_dependents(ended, at, retention)
if more or calls_back then results[#results + 1] = 'more' end
for _, index in pairs(concluded) do trim(index[1], index[2], at, TRIMMED_PER_STEP) end
write_counts()
return results
