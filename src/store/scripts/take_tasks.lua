-- Makes jobs of the tasks of a rhailib circle, each in the step that takes its id, so no task is
-- lost or doubled.
--
-- ARGV: 1 circle  2 script type of its jobs  3 limit on ids
--       4 ms that details may take to appear
-- returns { ids taken, jobs made, tasks that wait for their details,
--           { id, reason, … } of some that were dropped or refused }
-- needs: wrong_type time names job counters events rhailib queue leave

local circle, script_type, limit, patience_us = ARGV[1], ARGV[2], tonumber(ARGV[3]),
  tonumber(ARGV[4]) * 1000
local ID_LEN_MAX = 256
local SHOWN = 8
-- Late tasks looked at from either end.
local LATE_AT_ENDS = 50
local SEEN_TTL_S = 30 * 86400
local at = now_us()
local when = rfc3339(at)
local made, told, ids = 0, {}, 0
local tallies = {}

local function tally(what, task, why)
  tallies[what] = (tallies[what] or 0) + 1
  if task and #told < 2 * SHOWN then
    told[#told + 1] = string.sub(task, 1, 80)
    told[#told + 1] = why
  end
end

-- A task always becomes the same job.
local function job_of(task)
  if #task <= 59 and legal_id(task) then return TASK_JOB .. task end
  return TASK_JOB .. redis.sha1hex(task)
end

local function refuse(task, reply_to, why)
  answer_task(task, reply_to, 'error', why, when)
  tally('refused', task, why)
end

local function make_job(task, script, reply_to)
  local id = job_of(task)
  local f = read(id, 'status', 'script_type', 'unique_key')
  if f[1] and f[1] ~= 'finished' and f[1] ~= 'error' then
    return tally('doubled', task, 'is on its way already')
  end
  if f[1] then
    -- Its client has reused the id for a new task.
    leave_index(id, f[1], f[2], {})
    redis.call('DEL', JOB .. id, LOG .. id)
  end
  log_event(id, 'dispatched', script_type)
  redis.call('HSET', JOB .. id, 'id', id, 'script', script, 'script_type', script_type,
    'caller_id', 'rhailib', 'context_id', circle, 'reply', '0', 'status', 'dispatched',
    'created_at', when, 'updated_at', when, 'rhailib_task', task, 'rhailib_reply_to', reply_to)
  redis.call('HSET', DETAILS .. task, 'status', 'processing', 'updated_at', when)
  count(script_type, 'submitted')
  push_back(id, 'type:' .. script_type, at)
  made = made + 1
  tally('taken')
end

-- False if the details have not appeared yet.
local function take(task)
  if #task > ID_LEN_MAX then
    tally('dropped', task, 'its id is longer than ' .. ID_LEN_MAX .. ' bytes')
    return true
  end
  local f = redis.pcall('HMGET', DETAILS .. task, 'script', 'status', 'reply_to_queue',
    'reply_to', 'reply_queue_name')
  if f.err then
    tally('dropped', task, 'its details are no hash')
    return true
  end
  if not f[1] and not f[2] and redis.call('EXISTS', DETAILS .. task) == 0 then return false end
  local reply_to = present(f[3]) or present(f[4]) or present(f[5]) or ''
  if f[2] and f[2] ~= 'pending' then
    tally('doubled', task, 'its status is ' .. string.sub(f[2], 1, 32))
  elseif not may_reply_to(reply_to) then
    refuse(task, '', 'invalid task: reply_to_queue names a key that is no reply queue')
  elseif not present(f[1]) then
    refuse(task, reply_to, 'invalid task: script is missing')
  else
    make_job(task, f[1], reply_to)
  end
  return true
end

local looked_at = {}
-- Returns how many tasks there were, and how many no longer wait.
local function look_at_late(first, last)
  local late, gone = redis.call('ZRANGE', LATE .. circle, first, last, 'WITHSCORES'), 0
  for place = 1, #late, 2 do
    local task = late[place]
    local is_there = not looked_at[task] and take(task)
    if is_there or at - tonumber(late[place + 1]) > patience_us then
      if redis.call('ZREM', LATE .. circle, task) == 1 and not is_there then
        tally('dropped', task, 'its details never appeared')
      end
      gone = gone + 1
    end
    looked_at[task] = true
  end
  return #late / 2, gone
end

-- Of more tasks than one step looks at, these go first: the newest, which mostly get details soon;
-- the oldest, which are to be dropped; and a window that moves through all.
if redis.call('ZCARD', LATE .. circle) <= limit then
  look_at_late(0, -1)
else
  look_at_late(-LATE_AT_ENDS, -1)
  look_at_late(0, LATE_AT_ENDS - 1)
  local mark = 'late ' .. circle
  local from = tonumber(redis.call('HGET', MARKS, mark) or '') or 0
  local number, gone = look_at_late(from, from + limit - 1)
  redis.call('HSET', MARKS, mark, number == limit and from + number - gone or 0)
end
-- Clients push to the head alone, so the oldest task stands at the end.
local popped = redis.call('RPOP', TASKS .. circle, limit)
for _, task in ipairs(popped or {}) do
  ids = ids + 1
  if not take(task) then redis.call('ZADD', LATE .. circle, 'NX', integer(at), task) end
end
for what, number in pairs(tallies) do
  redis.call('HINCRBY', SEEN .. circle, what, number)
end
if ids > 0 then
  redis.call('HSET', SEEN .. circle, 'pushed_at', integer(math.floor(at / 1000)))
  redis.call('EXPIRE', SEEN .. circle, SEEN_TTL_S)
end
write_counts()
return { ids, made, redis.call('ZCARD', LATE .. circle), told }
