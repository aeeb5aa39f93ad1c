-- Reads the state of periodic jobs. One that is new counts from now on.
--
-- ARGV: the names
-- returns { now in us, then for each name: the time in us up to which it was fired or left out }
-- needs: wrong_type time cron

local at = now_us()
local state = { integer(at) }
for number, name in ipairs(ARGV) do
  local due = tonumber(redis.call('HGET', CRON .. name, 'due_us') or '')
  if not due then
    due = at
    redis.call('HSET', CRON .. name, 'due_us', integer(at))
    redis.call('EXPIRE', CRON .. name, CRON_TTL_S)
  end
  state[number + 1] = integer(due)
end
return state
