-- Puts the jobs of dead boots back to the front of their queues, or ends them at the crash limit.
--
-- ARGV: 1 a boot known to be dead, or '' for those whose lease has run out
--       2 crash limit  3 retention  4 the longest pause between two looks at leases in ms, 0 for no check of the clock
--       5 '', 'memory' if it was killed for lack of memory through no fault of its jobs, which charges those where it is the
--         third death in a row, or 'memory of scripts'
-- returns { boots without jobs by now, put back, ended, notes on jobs, 1 if jobs are left: call again, 1 if the clock was set
--           back: call `shorten_waits` }
-- needs: wrong_type time names routing job attempts sweep notes counters events queue_front ending illegal dependents foreign_end limits

local budget = 250
local crash_limit, retention = tonumber(ARGV[2]), ARGV[3]
local at = now_us()
local when = rfc3339(at)
local put_back, given_up, ended = 0, 0, {}
local done, left = 0, 0
despite_full_memory()

local function give_up(id, script_type, f, text, is_dead)
  local job = { script_type = script_type, reply = f[9], unique_key = f[10], retention = f[14],
    is_dead = is_dead }
  redis.call('HDEL', JOB .. id, 'exit_code')
  local hostname = hostname_of(f[2])
  if hostname then redis.call('HSET', JOB .. id, 'hostname', hostname) end
  end_job(id, job, 'error', text, nil, at, retention)
  if present(f[11]) then ended[#ended + 1] = { id = id, status = 'error', dependents = f[11] } end
  note(id, script_type, 'ended in error: ' .. text .. (is_dead and '; it is a dead letter' or ''))
  given_up = given_up + 1
end

-- Tells if the actors of the last two attempts of a job died so too. A job that may be the cause of each of the deaths must
-- end.
local function died_so_before(id, died_of)
  local UNCHARGED_IN_A_ROW = 2
  local attempts = present(read(id, 'attempts')[1])
  if not attempts then return false end
  local list = json_table(attempts)
  -- Another program wrote it, and no attempt is added.
  if not list or type(list[#list]) ~= 'table' then return true end
  for place = #list, #list - UNCHARGED_IN_A_ROW + 1, -1 do
    local last = list[place]
    local text = type(last) == 'table' and last.error
    if type(text) ~= 'string' or not string.find(text, died_of, 1, true) then return false end
  end
  return true
end

-- A job that was claimed ahead may not have begun. The first time it is charged no crash; then it has the
-- field `crashes`, and no such job is claimed ahead.
local function recover(id, boot, is_ahead)
  local died_of = ARGV[5] == '' and 'died' or 'was killed as memory ran out'
  redis.call('ZREM', RUNNING .. boot, id)
  local f = read(id, 'status', 'boot_id', 'script_type', 'group', 'instance', 'priority', 'attempt',
    'crashes', 'reply', 'unique_key', 'dependents', 'actor', 'stop_requested',
    'retention', 'limits', 'session', 'where')
  local script_type = type_of_job(f[3], f[12])
  if f[2] == boot then leave_limits(id, f[15], at) end
  if f[1] == 'finished' or f[1] == 'error' then
    return note_foreign_end(id, script_type, at, retention)
  end
  -- Otherwise another actor has taken it.
  if f[1] ~= 'started' or f[2] ~= boot then return end
  local queue = queue_of(f[3], f[4], f[5], f[6], f[17])
  local has_begun = not is_ahead or f[8]
  local is_charged = has_begun and (ARGV[5] ~= 'memory' or died_so_before(id, died_of))
  local crashes = (tonumber(f[8]) or 0) + (is_charged and 1 or 0)
  if is_charged or f[8] or is_ahead then redis.call('HSET', JOB .. id, 'crashes', crashes) end
  if present(f[13]) then return give_up(id, script_type, f, 'stopped_by_request') end
  -- Another run would be another session.
  if has_begun and f[16] then
    return give_up(id, script_type, f, 'session lost: actor ' .. (present(f[12]) or '') .. ' died while it ran')
  end
  -- Its fields are illegal, and it cannot run.
  if not queue then return give_up(id, script_type, f, illegal_text(f[3], f[4], f[5], f[6], f[17])) end
  if crashes >= crash_limit then
    give_up(id, script_type, f, 'crashed: ' .. crashes .. ' actors died running it' .. (ARGV[5] == '' and '' or ', the last as memory ran out'), true)
    return add_dead_letter(id, script_type)
  end
  if has_begun then note_attempt(id, 'crashed', ARGV[5] ~= '' and died_of .. ' while it ran the job' or nil, when) end
  log_event(id, 'dispatched')
  redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', when,
    'attempt', math.max((tonumber(f[7]) or 1) - 1, 0))
  redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress',
    'progress_text', 'unfinished_line')
  push_front(id, queue, at)
  count(f[3], 'recovered')
  put_back = put_back + 1
  note(id, script_type, 'goes back to the front of queue ' .. queue .. ': actor ' .. (present(f[12]) or '')
    .. (has_begun and not is_charged and ' ' .. died_of .. ', which is charged to no job'
      or has_begun and ' ' .. died_of .. ' while it ran the job; crash ' .. crashes .. ' of ' .. crash_limit
      or ' died when it had claimed the job ahead'))
end

-- A lease is judged by renewals, not by one look. If the clock was set, or nobody looked for long, each lease that was not
-- renewed since lasts on for as long as it had at the last look: within that time a live boot renews it. After a step
-- back, which may lie before the last renewal, it lasts for a pause at least.
local function keep_leases(pause_us)
  local SLACK_US = 1000000
  local last = tonumber(redis.call('HGET', MARKS, 'leases') or '')
  redis.call('HSET', MARKS, 'leases', integer(at))
  if last and at < last - SLACK_US then redis.call('HSET', MARKS, 'set_back', '+inf 0 ') end
  if not last or at >= last and at - last <= pause_us then return end
  local leases = redis.call('ZRANGEBYSCORE', BOOTS, '(0', '+inf', 'WITHSCORES')
  for place = 1, #leases, 2 do
    local ends = tonumber(leases[place + 1])
    local is_of_before = ends > last and (ends <= at or at < last)
    local new = at + ends - last
    if at < last then new = math.min(ends, math.max(new, at + pause_us)) end
    if is_of_before then redis.call('ZADD', BOOTS, integer(new), leases[place]) end
  end
end
if tonumber(ARGV[4]) > 0 then keep_leases(tonumber(ARGV[4]) * 1000) end

local boots = { ARGV[1] }
if ARGV[1] == '' then
  local BOOTS_PER_STEP = 10
  boots = redis.call('ZRANGEBYSCORE', BOOTS, '-inf', integer(at), 'LIMIT', 0, BOOTS_PER_STEP)
end
for _, boot in ipairs(boots) do
  -- From here on its heartbeat finds the lease lost.
  redis.call('ZREM', BOOTS, boot)
  -- The latest first, so that the earliest ends up in front.
  if budget > 0 then
    local jobs = redis.call('ZREVRANGE', RUNNING .. boot, 0, budget - 1, 'WITHSCORES')
    for place = 1, #jobs, 2 do recover(jobs[place], boot, jobs[place + 1] % 2 == 1) end
    budget = budget - #jobs / 2
  end
  -- If jobs are left, the lease stays declared over, and the next step continues.
  if redis.call('EXISTS', RUNNING .. boot) == 1 then
    redis.call('ZADD', BOOTS, 0, boot)
    left = 1
  else
    redis.pcall('HDEL', BOOT_HOSTS, boot)
    done = done + 1
  end
end
if #ended > 0 then tell_dependents(ended, at, retention) end
write_counts()
return { done, put_back, given_up, notes, left, tonumber(ARGV[4]) > 0 and redis.call('HEXISTS', MARKS, 'set_back') or 0 }
