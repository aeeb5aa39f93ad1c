-- A part of claim.lua: jobs that stand in a legacy queue.
--
-- ARGV: type, at and when of the claim; skipped, what it has passed over; some_are_paused
-- returns { take_over }

local own_type, at, when = ARGV.type, ARGV.at, ARGV.when

-- A legacy queue holds jobs of many queues, so it is never paused as a whole. What it holds for a
-- queue that is waits there, in no legacy queue any more: an old worker would run it all the same.
local function is_queue_paused(queue)
  return ARGV.some_are_paused and redis.call('SMISMEMBER', PAUSED, queue)[1] == 1
end

local function leave_to_paused_queue(id)
  redis.call('HSET', JOB .. id, 'legacy', '')
  skip(ARGV.skipped, id, 'its queue is paused')
end

-- Somebody has popped the job from Hero's own queue: an actor of ours whose claim follows, or a
-- foreign one, which has not said so yet. The job is theirs, and stands in no legacy queue any more;
-- should they have died, the sweep for lost pops puts it back into both.
local function leave_to_whoever_popped(id)
  redis.call('HSET', JOB .. id, 'legacy', '')
  skip(ARGV.skipped, id, 'it was popped from its own queue')
end

-- Whether a job that an older program pushed has to wait for others. One that can only fail, for a
-- prerequisite of its own has, waits as well, until the supervisor tells it.
local function is_held_back(id, fields, old)
  local prerequisites = list_of_ids(present(fields.prerequisites))
  for _, prerequisite in ipairs(list_of_ids(present(fields.dependencies))) do
    prerequisites[#prerequisites + 1] = prerequisite
  end
  local pending, over = {}, {}
  for _, prerequisite in ipairs(prerequisites) do
    local status = read(prerequisite, 'status')[1]
    if not status or status == 'error' then
      over[#over + 1] = prerequisite
    elseif status ~= 'finished' then
      pending[#pending + 1] = prerequisite
    end
  end
  if #over + #pending == 0 then return false end
  for _, prerequisite in ipairs(over) do redis.call('SADD', PENDING .. id, prerequisite) end
  add_dependent(id, pending)
  moving(id, 'waiting_for_prerequisites', own_type)
  redis.call('HSET', JOB .. id, 'status', 'waiting_for_prerequisites', 'updated_at', when,
    'legacy_origin', old.list)
  enter('waiting_for_prerequisites', own_type, id, at)
  return true
end

-- Takes over a job from a legacy queue: voids its copy in Hero's own, or makes a job of Hero's of
-- what an older program wrote. Returns the work list it belongs to, nil if it cannot start.
local function take_over(id, hash, legacy, old)
  local fields = {}
  for i = 1, #hash, 2 do fields[hash[i]] = hash[i + 1] end
  local queue = queue_of(fields.script_type, fields.group, fields.instance, fields.priority)
  if legacy == old.list and queue then
    if is_queue_paused(queue) then return leave_to_paused_queue(id) end
    local length = redis.pcall('LLEN', WORK .. queue)
    local is_short = type(length) == 'number' and length <= SEARCHED_QUEUE_LEN
    if is_short and redis.call('LREM', WORK .. queue, 1, id) == 0
      and redis.call('ZSCORE', READY .. queue, id) then
      return leave_to_whoever_popped(id)
    end
    redis.call('ZREM', READY .. queue, id)
    return WORK .. queue
  end
  seen(old.list, 'pushed_at', at)
  for i = 1, #hash, 2 do
    -- In a spelling of their own.
    if hash[i] == 'script_type' then hash[i + 1] = own_type end
    if hash[i] == 'status' then hash[i + 1] = 'dispatched' end
  end
  -- From here on the job is for those that its queue was for.
  local group = present(fields.group) or old.group ~= 'default' and old.group or nil
  local instance = present(fields.instance) or present(old.instance)
  redis.call('HSET', JOB .. id, 'legacy', old.list, 'script_type', own_type)
  if group then redis.call('HSET', JOB .. id, 'group', group) end
  if instance then redis.call('HSET', JOB .. id, 'instance', instance) end
  if is_held_back(id, fields, old) then return nil end
  queue = queue_of(own_type, group, instance, fields.priority) or 'type:' .. own_type
  if is_queue_paused(queue) then
    register(TYPES, own_type)
    register(QUEUES, queue)
    redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', when)
    redis.call('ZADD', READY .. queue, integer(at), id)
    redis.pcall('RPUSH', WORK .. queue, id)
    return leave_to_paused_queue(id)
  end
  return WORK .. queue
end

return { take_over = take_over }
