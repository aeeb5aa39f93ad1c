-- Keeps a sample of the counters of each type once a minute, however many supervisors call it. Counters only grow,
-- so two samples tell what happened between them.
--
-- ARGV: the names of the counters
-- returns 1 if it kept one, 0 if this minute has one
-- needs: wrong_type time sweep

-- An hour, with the sample before it; the types, the first by name; the queues.
local SAMPLES_MAX, SAMPLED_TYPES, SAMPLED_QUEUES, SAMPLES_TTL_S = 61, 32, 1000, 7200
local MINUTE_US, at = 60000000, now_us()

local last = redis.call('LINDEX', SAMPLES, -1)
local last_us = type(last) == 'string' and tonumber(string.match(last, '"at_us":(%d+)'))
if last_us and math.floor(last_us / MINUTE_US) == math.floor(at / MINUTE_US) then return 0 end
despite_full_memory()

local types = some_types()
table.sort(types)
local counted = {}
for place = 1, math.min(#types, SAMPLED_TYPES) do
  local numbers = redis.call('HMGET', STATS .. types[place], unpack(ARGV))
  local texts = {}
  for number = 1, #ARGV do texts[number] = integer(tonumber(numbers[number] or '') or 0) end
  counted[place] = string.format('%q:[%s]', types[place], table.concat(texts, ','))
end
local queued, held, running = 0, 0, 0
for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, SAMPLED_QUEUES)) do
  queued = queued + redis.call('ZCARD', READY .. queue)
  held = held + redis.call('ZCARD', HELD .. queue)
end
for _, boot in ipairs(redis.call('ZRANGE', BOOTS, 0, SAMPLED_QUEUES - 1)) do
  running = running + redis.call('ZCARD', RUNNING .. boot)
end
redis.call('RPUSH', SAMPLES, string.format('{"at_us":%d,"queued":%d,"held":%d,"running":%d,"types":{%s}}', at,
  queued, held, running, table.concat(counted, ',')))
redis.call('LTRIM', SAMPLES, -SAMPLES_MAX, -1)
redis.call('EXPIRE', SAMPLES, SAMPLES_TTL_S)
return 1
