-- Hands control messages for a type to each of its live actors.
--
-- ARGV: 1 lease in ms, within which an actor counts as live  2 limit on messages
-- returns how many messages were handed on
-- needs: wrong_type time sweep control

local at = now_us()
local handed_on = 0
for _, script_type in ipairs(some_types(at)) do
  local left = tonumber(ARGV[2]) - handed_on
  local messages = left > 0 and redis.pcall('LPOP', CONTROL .. script_type, left)
  if messages and not messages.err then
    tell_actors_of(script_type, messages, at, tonumber(ARGV[1]) * 1000)
    handed_on = handed_on + #messages
  end
end
return handed_on
