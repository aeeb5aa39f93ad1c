-- Hands control messages for a whole type to each of its live actors.
--
-- ARGV: 1 lease in ms, within which an actor counts as live  2 how many messages per type at most
-- returns how many messages were handed on

local CONTROL_LEN_MAX = 10000
local at = now_us()
local handed_on = 0
for _, script_type in ipairs(some_types()) do
  local messages = redis.pcall('LPOP', CONTROL .. script_type, ARGV[2])
  if messages and not messages.err then
    local since = integer(at - tonumber(ARGV[1]) * 1000)
    for _, actor in ipairs(redis.call('ZRANGEBYSCORE', ACTORS, since, '+inf')) do
      local own, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
      if own == script_type then
        local list = CONTROL .. own .. ':group:' .. group .. ':inst:' .. instance
        redis.call('RPUSH', list, unpack(messages))
        redis.call('LTRIM', list, -CONTROL_LEN_MAX, -1)
        redis.call('EXPIRE', list, 86400)
      end
    end
    handed_on = handed_on + #messages
  end
end
return handed_on
