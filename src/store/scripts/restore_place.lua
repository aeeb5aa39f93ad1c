-- Sends a restored job on its way, to the state that it had. It waits for its prerequisites
-- that have not ended in this backup: the copies of two jobs are of different moments.
--
-- ARGV: 1 id  2 its state in the backup  3 its queue in the backup, or ''  4 retention
--       5... its pending prerequisites in the backup
-- returns its new state; 'illegal' if its fields name no queue, and it stays `created`; 'missing'
-- needs: wrong_type time names routing job later_owner counters index queue ending prerequisites waiting awaited expiring dependents waits begin_wait

local id, before, retention, at = ARGV[1], ARGV[2], ARGV[4], now_us()
local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'run_at',
  'prerequisites', 'reply', 'unique_key', 'dependents', 'after_any', 'retention', 'actor',
  'stop_requested', 'dependencies', 'prerequisites_at', 'wait', 'where')
-- Sent before: the answer to that call was lost.
if f[1] ~= 'created' then return f[1] or 'missing' end
local queue = present(ARGV[3]) or queue_of(f[2], f[3], f[4], f[5], f[18])
if not queue then return 'illegal' end
local script_type = type_of_job(f[2], f[13])

-- Returns the state of a prerequisite; nil if it is gone, or another job has its id now.
local function state_of(prerequisite)
  local of = read(prerequisite, 'status', 'created_at')
  return not is_later_owner(of[2], f[16]) and of[1] or nil
end

-- Returns the entries of the pending set, the prerequisite that makes the job fail, and those that have ended.
local function look_again()
  local was_pending, pending, ended = {}, {}, {}
  for place = 5, #ARGV do was_pending[ARGV[place]] = true end
  for _, prerequisite in ipairs(list_of_ids(f[7] or f[15])) do
    local status = state_of(prerequisite)
    if status and status ~= 'finished' and status ~= 'error' then
      pending[#pending + 1] = prerequisite
    elseif status ~= 'finished' and was_pending[prerequisite] then
      return pending, prerequisite, ended
    elseif status then
      ended[#ended + 1] = prerequisite
    end
  end
  for _, prerequisite in ipairs(list_of_ids(f[11])) do
    local status = state_of(prerequisite)
    if status and status ~= 'finished' and status ~= 'error' then
      pending[#pending + 1] = ANY .. prerequisite
    elseif status then
      ended[#ended + 1] = prerequisite
    end
  end
  return pending, nil, ended
end

local function fail(text)
  local job = { script_type = script_type, reply = f[8], unique_key = f[9], retention = f[12] }
  end_job(id, job, 'error', text, nil, at, retention)
  if present(f[10]) then
    tell_dependents({ { id = id, status = 'error', dependents = f[10] } }, at, retention)
  end
  return 'error'
end

-- Lets a job wait on that waited in the backup.
local function wait_on(wait, ends)
  redis.call('HSET', JOB .. id, 'status', 'scheduled')
  local event, look = begin_wait(id, wait, ends, at)
  if event then
    wake_waiting(id, script_type, queue, event, at)
    return 'dispatched'
  end
  enter('scheduled', script_type, id, look)
  redis.call('ZADD', index_of('waits', script_type), integer(ends), id)
  return 'scheduled'
end

local pending, failed, over = look_again()
redis.call('ZREM', index_of('created', script_type), id)
local state
if not failed then
  keep_all_for(id, over)
  note_latest_times(id)
end
if before == 'started' and present(f[14]) then
  state = fail('stopped_by_request')
elseif failed then
  state = fail(PREREQUISITE_FAILED .. failed)
  note_failed_dependent(id, failed)
elseif #pending > 0 then
  state = 'waiting_for_prerequisites'
  redis.call('HSET', JOB .. id, 'status', state)
  enter(state, script_type, id, at)
  add_dependent(id, pending)
elseif before == 'dispatched' or before == 'started' then
  state = 'dispatched'
  redis.call('HSET', JOB .. id, 'status', state)
  push_back(id, queue, at)
elseif before == 'scheduled' and f[17] then
  state = wait_on(f[17], microseconds(f[6]))
else
  state = dispatch_or_schedule(id, queue, microseconds(f[6]), at)
  if state == 'dispatched' then
    redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress', 'progress_text', 'unfinished_line')
  end
end
write_counts()
return state
