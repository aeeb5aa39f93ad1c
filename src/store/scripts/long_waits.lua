-- Queues whose first job has begun to wait for long, and those where none does any more. Each is told
-- once, to whoever asks first.
--
-- ARGV: 1 how long is long, in us
-- returns { queue, us that its first job has waited, or -1 if none waits for long any more, ... }
-- needs: time routing sweep counters

local long_us, at = tonumber(ARGV[1]), now_us()
local QUEUES_PER_STEP = 1000
local news = {}
despite_full_memory()

local function waited(queue)
  local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
  return first[2] and at - tonumber(first[2]) or 0
end

local function tell(queue, us)
  news[#news + 1] = queue
  news[#news + 1] = integer(us)
end

-- First, as a queue that is empty leaves the other list.
for _, queue in ipairs(redis.call('SRANDMEMBER', SLOW, QUEUES_PER_STEP)) do
  if waited(queue) < long_us then
    redis.call('SREM', SLOW, queue)
    tell(queue, -1)
  end
end
for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, QUEUES_PER_STEP)) do
  local us = waited(queue)
  if us >= long_us and redis.call('SADD', SLOW, queue) == 1 then
    count(type_of_queue(queue), 'long_waits')
    tell(queue, us)
  end
end
write_counts()
return news
