-- What the scripts share about queues with older names. The constants of the keys come before it;
-- LEGACY is false, or the legacy queues that are served.
--
-- A job that stands in a legacy queue as well has the key of that queue in its field `legacy`, one
-- whose copy there was given up has the field empty. Old
-- workers know nothing of states: whoever pops an id runs it. So the copy in the legacy queue is
-- the right to run the job: ours takes it out in the step in which it claims the job, and where it
-- is gone an old worker has the job, even if it has not said so yet.

local LEGACY_REPLY_TTL_S = 60

local function is_legacy_queue(list)
  if type(list) ~= 'string' or #list > 256 then return false end
  local name
  for _, prefix in ipairs({ LEGACY_WORK, JOB .. 'actor_queue:', JOB }) do
    if not name and string.sub(list, 1, #prefix) == prefix then
      name = string.sub(list, #prefix + 1)
    end
  end
  return name and string.match(name, '^[A-Za-z0-9_.-]+$') ~= nil
end

-- The entry of a legacy queue that is served.
local function legacy_queue(list)
  for _, queue in ipairs(LEGACY or {}) do
    if queue.list == list then return queue end
  end
  return nil
end

-- The legacy queues whose workers may run the jobs of a queue, looked up once a script.
local candidates = {}
local function legacy_queues_of(queue)
  local found = candidates[queue]
  if found then return found end
  found = {}
  candidates[queue] = found
  local script_type = string.match(queue, '^type:([^:]+)')
  local group, instance = string.match(queue, ':group:([^:]+)'), string.match(queue, ':inst:(%d+)')
  for _, legacy in ipairs(LEGACY or {}) do
    if legacy.type == script_type and (not group or legacy.group == group)
        and (not instance or legacy.instance == instance) then
      found[#found + 1] = legacy.list
    end
  end
  return found
end

-- The one legacy queue for a job of a queue, or nil: with several of them the shortest.
local lengths = {}
local function legacy_list_of(queue)
  local found = legacy_queues_of(queue)
  if #found < 2 then return found[1] end
  local best
  for _, list in ipairs(found) do
    if not lengths[list] then
      local length = redis.pcall('LLEN', list)
      lengths[list] = type(length) == 'number' and length or math.huge
    end
    if not best or lengths[list] < lengths[best] then best = list end
  end
  lengths[best] = lengths[best] + 1
  return best
end

-- Puts the copy of a job into its legacy queue, if it has one.
local function copy_to_legacy(id, queue, to_front)
  local list = legacy_list_of(queue)
  if not list then
    redis.call('HDEL', JOB .. id, 'legacy')
    return
  end
  redis.call('HSET', JOB .. id, 'legacy', list)
  redis.pcall(to_front and 'LPUSH' or 'RPUSH', list, id)
end

-- Takes the copy of a job out of its legacy queue. False if it is gone: an old worker has the job.
-- A key that is no list has no copies.
local function withdraw(id, list)
  if not is_legacy_queue(list) then return true end
  local removed = redis.pcall('LREM', list, 1, id)
  return type(removed) ~= 'number' or removed > 0
end

-- Notes a sign of life of old programs.
local function seen(list, what, at)
  if legacy_queue(list) then
    redis.call('HSET', SEEN .. list, what, string.format('%.0f', math.floor(at / 1000)))
  end
end

-- The reply as older clients wait for it: the output or the error, as it is.
local function reply_to_legacy(id, text)
  if not redis.call('HGET', JOB .. id, 'legacy') then return end
  redis.pcall('RPUSH', LEGACY_REPLY .. id, text)
  redis.pcall('EXPIRE', LEGACY_REPLY .. id, LEGACY_REPLY_TTL_S)
end

-- Tells the old worker of a legacy queue to stop a job.
local function tell_old_worker(id, list)
  if not is_legacy_queue(list) then return false end
  local stops = LEGACY_STOP .. string.match(list, '[^:]+$')
  if not redis.pcall('LPOS', stops, id) then redis.pcall('LPUSH', stops, id) end
  redis.call('HSET', JOB .. id, 'stop_requested', '1')
  return true
end

-- Tasks of rhailib are jobs with ids that begin like this.
local TASK_JOB = 'rhai-'
local TASK_REPLY_TTL_S = 3600

-- Whether a stranger may have an answer pushed to a key: not to Hero's own, nor to rhailib's queues.
local function may_reply_to(list)
  for _, prefix in ipairs({ HERO, TASKS, DETAILS }) do
    if string.sub(list, 1, #prefix) == prefix then return false end
  end
  return #list <= 256
end

-- Writes the outcome of a task into its details, and pushes it to the list that its client named:
-- once, even if a person runs the job again.
local function answer_task(task, reply_to, status, text, when)
  local word = status == 'finished' and 'completed' or 'error'
  local field = status == 'finished' and 'output' or 'error'
  redis.pcall('HSET', DETAILS .. task, 'status', word, field, text, 'updated_at', when)
  if reply_to and reply_to ~= '' and may_reply_to(reply_to) then
    local reply = { task_id = task, status = word }
    reply[field] = text
    redis.pcall('LPUSH', reply_to, cjson.encode(reply))
    redis.pcall('EXPIRE', reply_to, TASK_REPLY_TTL_S)
  end
end

local function answer_task_of(id, status, text, when)
  local f = redis.call('HMGET', JOB .. id, 'rhailib_task', 'rhailib_reply_to')
  if f[1] then
    redis.call('HDEL', JOB .. id, 'rhailib_reply_to')
    answer_task(f[1], f[2], status, text, when)
  end
end
