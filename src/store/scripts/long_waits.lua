-- Finds queues whose first job has begun to wait for long, and queues where that has ended. Reports
-- each change once, to one caller.
--
-- ARGV: 1 length of a long wait in us
-- returns { queue, us that its first job has waited, or -1 if the long wait has ended, ... }
-- needs: wrong_type time routing sweep counters

local long_us, at = tonumber(ARGV[1]), now_us()
local QUEUES_PER_STEP = 500
local news = {}
despite_full_memory()

local function waited(queue)
  local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
  return first[2] and at - tonumber(first[2]) or 0
end

local function report(queue, us)
  news[#news + 1] = queue
  news[#news + 1] = integer(us)
end

-- First, as an empty queue leaves the other set.
for _, queue in ipairs(redis.call('SRANDMEMBER', SLOW, QUEUES_PER_STEP)) do
  if waited(queue) < long_us then
    redis.call('SREM', SLOW, queue)
    report(queue, -1)
  end
end
for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, QUEUES_PER_STEP)) do
  local us = waited(queue)
  if us >= long_us and redis.call('SADD', SLOW, queue) == 1 then
    count(type_of_queue(queue), 'long_waits')
    report(queue, us)
  end
end
write_counts()
return news
