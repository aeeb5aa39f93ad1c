-- Keeps a sample of the counters of each type once a minute, and one of them an hour for longer, however many
-- supervisors call it. Counters only grow, so two samples tell what happened between them.
--
-- ARGV: the names of the counters
-- returns 1 if it kept one, 0 if this minute has one
-- needs: wrong_type time sweep

-- An hour, with the sample before it; the types, the first by name; the queues.
local SAMPLES_MAX, SAMPLED_TYPES, SAMPLED_QUEUES, SAMPLES_TTL_S = 61, 32, 1000, 7200
-- 30 days, with the sample before them.
local HOURS_MAX, HOURS_TTL_S = 721, 2678400
local MINUTE_US, HOUR_US, at = 60000000, 3600000000, now_us()

-- Returns when the last sample of a list was taken.
local function last_of(list)
  local last = redis.call('LINDEX', list, -1)
  return type(last) == 'string' and tonumber(string.match(last, '"at_us":(%d+)'))
end
local function keep(list, sample, most, ttl_s)
  redis.call('RPUSH', list, sample)
  redis.call('LTRIM', list, -most, -1)
  redis.call('EXPIRE', list, ttl_s)
end

local last_us = last_of(SAMPLES)
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
local sample = string.format('{"at_us":%d,"queued":%d,"held":%d,"running":%d,"types":{%s}}', at,
  queued, held, running, table.concat(counted, ','))
keep(SAMPLES, sample, SAMPLES_MAX, SAMPLES_TTL_S)
local hour_us = last_of(HOURS)
if not hour_us or math.floor(hour_us / HOUR_US) ~= math.floor(at / HOUR_US) then
  keep(HOURS, sample, HOURS_MAX, HOURS_TTL_S)
end
return 1
