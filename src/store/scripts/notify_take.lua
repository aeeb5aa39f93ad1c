-- Gives messages that are due to one supervisor. If it does not record what became of them within the lease, another
-- one gets them.
--
-- ARGV: 1 limit on messages  2 lease in ms
-- returns their JSON texts
-- needs: wrong_type time

-- A message that gathers events is due at a whole millisecond: by any other score `notify_plan` knows one that is taken.
local at = now_us()
local lease = at - at % 1000 + ARGV[2] * 1000 + 1
local taken = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', NOTIFY_DUE, '-inf', integer(at), 'LIMIT', 0, ARGV[1])) do
  local message = redis.call('HGET', NOTIFY_MESSAGES, id)
  if message then
    redis.call('ZADD', NOTIFY_DUE, integer(lease), id)
    taken[#taken + 1] = message
  else
    redis.call('ZREM', NOTIFY_DUE, id)
  end
end
return taken
