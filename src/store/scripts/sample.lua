-- Samples the throughput of every type and its counters of the last hour, removes empty queues, unused types and
-- entries of expired jobs, and sorts those that ended under an older version by their ends.
--
-- ARGV: 1 least time between samples in ms
-- returns { types that were sampled, 1 if entries of expired or unsorted jobs are left, types whose jobs have ended
--           since the sample before, jobs that were sorted }
-- needs: wrong_type time names routing sweep index sort_ends
-- rarely: where

local least_us, at = tonumber(ARGV[1]) * 1000, now_us()
local STATS_TTL_S = 7 * 86400
local MINUTE_US, HOUR_US = 60000000, 3600000000
local DEAD_LETTERS_PER_STEP, QUEUES_PER_STEP, SAMPLES_PER_STEP = 500, 500, 200
local SORTED_PER_STEP = 500
local sampled, busy, looked, sorted, is_unsorted = 0, 0, 0, 0, false
-- What this step may still remove, of all types together.
local entries, letters = TRIMMED_PER_STEP, DEAD_LETTERS_PER_STEP
despite_full_memory()

local function time_of(sample)
  return type(sample) == 'string' and tonumber(string.match(sample, '^%d+'))
end

-- Keeps the counters of a type once a minute, as 'AT_US FINISHED FAILED DEAD'. The first sample is the
-- newest of those that are an hour old. A new type begins at zero.
local function keep_hour(script_type, counters, is_new)
  local samples = HOUR .. script_type
  local newest = time_of(redis.call('LINDEX', samples, -1))
  -- A sample of the future is of before the clock was set back.
  if newest and newest <= at and at - newest < MINUTE_US then return end
  if not newest and is_new then counters = {} end
  local numbers = {}
  for place = 1, 3 do numbers[place] = integer(tonumber(counters[place]) or 0) end
  redis.call('RPUSH', samples, integer(at) .. ' ' .. table.concat(numbers, ' '))
  redis.call('EXPIRE', samples, STATS_TTL_S)
  for _ = 1, SAMPLES_PER_STEP do
    local second = time_of(redis.call('LINDEX', samples, 1))
    if not second or second <= at and at - second < HOUR_US then break end
    redis.call('LPOP', samples)
  end
end

-- Tells if a live actor serves a type; looked up only before one is removed.
local served
local function is_served(script_type)
  if not served then
    served = {}
    for _, actor in ipairs(redis.call('ZRANGE', ACTORS, 0, -1)) do
      served[string.match(actor, '^[^:]*')] = true
    end
  end
  return served[script_type]
end

-- Tells if a type has a queue: its dispatched jobs are in no index of the type.
local queued
local function has_queue(script_type)
  if not queued then
    queued = {}
    for _, queue in ipairs(redis.call('SMEMBERS', QUEUES)) do queued[type_of_queue(queue) or ''] = true end
  end
  return queued[script_type]
end

-- Removes a type without jobs and actors. Its counters stay for a while.
local function give_up_if_unused(script_type)
  local keys = { DEAD .. script_type, CONTROL .. script_type, WHERE_USED .. script_type }
  for _, status in ipairs({ 'created', 'waiting_for_prerequisites', 'scheduled', 'started', 'finished',
    'error' }) do
    keys[#keys + 1] = index_of(status, script_type)
  end
  if redis.call('EXISTS', unpack(keys)) == 0 and not is_served(script_type) and not has_queue(script_type) then
    redis.call('SREM', TYPES, script_type)
    redis.call('EXPIRE', STATS .. script_type, STATS_TTL_S)
  end
end

-- Removes expressions that no job in a queue has had for a day.
local function remove_selectors(script_type)
  local DAY_US, PER_STEP = 86400000000, 100
  local used = WHERE_USED .. script_type
  for _, digest in ipairs(redis.call('ZRANGEBYSCORE', used, '-inf', integer(at - DAY_US), 'LIMIT', 0, PER_STEP)) do
    local queue, keys = 'type:' .. script_type .. ':where:' .. digest, {}
    for _, priority in ipairs({ '', ':prio:0', ':prio:1', ':prio:2' }) do
      for _, key in ipairs({ WORK, READY, HELD }) do keys[#keys + 1] = key .. queue .. priority end
    end
    if redis.call('EXISTS', unpack(keys)) == 0 then
      redis.call('ZREM', used, digest)
      redis.call('HDEL', WHERE .. script_type, digest)
      redis.pcall('DEL', WAKE .. queue)
    else
      redis.call('ZADD', used, integer(at), digest)
    end
  end
end

local types = some_types()
for _, script_type in ipairs(types) do
  local now = redis.pcall('HMGET', STATS .. script_type, 'finished', 'failed', 'dead', 'cancelled', 'replaced')
  local done = 0
  for _, place in ipairs({ 1, 2, 4, 5 }) do done = done + (tonumber(now[place]) or 0) end
  local last = redis.call('HMGET', RATE .. script_type, 'at_us', 'done')
  keep_hour(script_type, now, not last[1])
  if last[2] ~= integer(done) then busy = busy + 1 end
  local since = at - (tonumber(last[1]) or 0)
  if since < 0 or since >= least_us then
    local rate = last[1] and since > 0 and math.max(done - (tonumber(last[2]) or 0), 0) / (since / 1000000) or 0
    redis.call('HSET', RATE .. script_type, 'at_us', integer(at), 'done', integer(done),
      'per_s', string.format('%.2f', rate))
    redis.call('EXPIRE', RATE .. script_type, 60)
    sampled = sampled + 1
  end
  entries = entries - trim('finished', script_type, at, entries)
  entries = entries - trim('error', script_type, at, entries)
  if looked < SORTED_PER_STEP then
    local number, left, given = sort_ends(script_type, at, SORTED_PER_STEP - looked)
    looked, sorted, is_unsorted = looked + number, sorted + given, is_unsorted or left == nil
  end
  while letters > 0 do
    letters = letters - 1
    local oldest = redis.pcall('LINDEX', DEAD .. script_type, 0)
    if type(oldest) ~= 'string' or redis.call('EXISTS', JOB .. oldest) == 1 then break end
    redis.call('LPOP', DEAD .. script_type)
  end
  remove_selectors(script_type)
end
for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, QUEUES_PER_STEP)) do
  local length = redis.pcall('LLEN', WORK .. queue)
  if length == 0 and redis.call('EXISTS', READY .. queue, HELD .. queue) == 0 then
    redis.call('SREM', QUEUES, queue)
    redis.call('HDEL', MARKS, queue, 'adopt ' .. queue)
    redis.pcall('DEL', WAKE .. string.gsub(queue, ':prio:%d$', ''))
  elseif is_where_queue(queue) then
    -- Without its expression, no actor would find the queue again.
    local id = redis.pcall('LINDEX', WORK .. queue, 0)
    local known = redis.call('HEXISTS', WHERE .. type_of_queue(queue), parts_of_queue(queue).digest)
    if known == 0 and type(id) == 'string' then rarely().note_where(queue, id, at) end
  end
end
for _, script_type in ipairs(types) do give_up_if_unused(script_type) end
return { sampled, (entries <= 0 or letters <= 0 or is_unsorted) and 1 or 0, busy, sorted }
