-- Returns keys with a wrong type that were not reported for some time, and forgets those that were
-- repaired.
--
-- ARGV: 1 the time between two reports of one key in s
-- returns { key, its type, ... }
-- needs: time

local at, again_us = now_us(), tonumber(ARGV[1]) * 1000000
local news = {}
if redis.call('TYPE', WRONG_TYPES).ok ~= 'zset' then return news end
-- A key that still has the wrong type is noted again by the next script that meets it.
redis.call('ZREMRANGEBYSCORE', WRONG_TYPES, 1, integer(at - again_us))
for _, key in ipairs(redis.call('ZRANGEBYSCORE', WRONG_TYPES, 0, 0)) do
  redis.call('ZADD', WRONG_TYPES, integer(at), key)
  news[#news + 1] = key
  news[#news + 1] = redis.call('TYPE', key).ok
end
return news
