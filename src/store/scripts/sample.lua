-- Samples the throughput of every type, and removes empty queues, unused types and entries of
-- expired jobs.
--
-- ARGV: 1 least time between samples in ms
-- returns how many types were sampled
-- needs: wrong_type time sweep index

local least_us, at = tonumber(ARGV[1]) * 1000, now_us()
local STATS_TTL_S = 7 * 86400
local sampled = 0
despite_full_memory()

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

-- Removes a type without jobs and actors. Its counters stay for a while.
local function give_up_if_unused(script_type)
  local keys = { DEAD .. script_type, CONTROL .. script_type }
  for _, status in ipairs({ 'created', 'waiting_for_prerequisites', 'scheduled', 'started', 'finished',
    'error' }) do
    keys[#keys + 1] = index_of(status, script_type)
  end
  if redis.call('EXISTS', unpack(keys)) == 0 and not is_served(script_type) then
    redis.call('SREM', TYPES, script_type)
    redis.call('EXPIRE', STATS .. script_type, STATS_TTL_S)
  end
end

for _, script_type in ipairs(some_types()) do
  local now = redis.pcall('HMGET', STATS .. script_type, 'finished', 'failed')
  local done = (tonumber(now[1]) or 0) + (tonumber(now[2]) or 0)
  local last = redis.call('HMGET', RATE .. script_type, 'at_us', 'done')
  local since = at - (tonumber(last[1]) or 0)
  if since >= least_us then
    local rate = last[1] and math.max(done - (tonumber(last[2]) or 0), 0) / (since / 1000000) or 0
    redis.call('HSET', RATE .. script_type, 'at_us', integer(at), 'done', integer(done),
      'per_s', string.format('%.2f', rate))
    redis.call('EXPIRE', RATE .. script_type, 60)
    sampled = sampled + 1
  end
  trim('finished', script_type, at)
  trim('error', script_type, at)
  for _ = 1, EXPIRED_PER_STEP do
    local oldest = redis.pcall('LINDEX', DEAD .. script_type, 0)
    if type(oldest) ~= 'string' or redis.call('EXISTS', JOB .. oldest) == 1 then break end
    redis.call('LPOP', DEAD .. script_type)
  end
  give_up_if_unused(script_type)
end
for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, EXPIRED_PER_STEP)) do
  local length = redis.pcall('LLEN', WORK .. queue)
  if length == 0 and redis.call('EXISTS', READY .. queue, HELD .. queue) == 0 then
    redis.call('SREM', QUEUES, queue)
    redis.call('HDEL', MARKS, queue)
  end
end
return sampled
