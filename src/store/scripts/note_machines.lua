-- Notes on which machines actors live, and forgets those that were not seen for a time.
--
-- ARGV: 1 this time in s, then for each actor: TYPE:GROUP:INSTANCE, its labels as JSON
-- returns how many were forgotten
-- needs: wrong_type time

local FORGOTTEN_MAX = 1000
local at = now_us()
for place = 2, #ARGV, 2 do
  redis.call('ZADD', ACTORS_SEEN, integer(at), ARGV[place])
  redis.call('HSET', ACTOR_LABELS, ARGV[place], ARGV[place + 1])
end
local until_us = integer(at - tonumber(ARGV[1]) * 1000000)
local old = redis.call('ZRANGEBYSCORE', ACTORS_SEEN, '-inf', until_us, 'LIMIT', 0, FORGOTTEN_MAX)
if #old > 0 then
  redis.call('ZREM', ACTORS_SEEN, unpack(old))
  redis.call('HDEL', ACTOR_LABELS, unpack(old))
end
return #old
