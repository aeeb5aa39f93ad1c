-- Notes actors of foreign programs by their presence.
--
-- ARGV: TYPE:GROUP:INSTANCE of those whose presence was written
-- returns how many are foreign
-- needs: wrong_type time names routing index

local DAY_US = 86400 * 1000000
local at, number = now_us(), 0
for _, actor in ipairs(ARGV) do
  local script_type, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
  local presence = queue_of(script_type, group, instance) and json_table(redis.pcall('GET', PRESENCE .. actor))
  if presence and not presence.boot_id then
    redis.call('ZADD', FOREIGN_ACTORS, integer(at), actor)
    register(TYPES, script_type)
    number = number + 1
  end
end
redis.call('ZREMRANGEBYSCORE', FOREIGN_ACTORS, '-inf', integer(at - DAY_US))
return number
