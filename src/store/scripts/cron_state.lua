-- Reads the state of periodic jobs. A new or disabled one counts from now on.
--
-- ARGV: the names
-- returns { now in us, then for each name: the time in us up to which it was fired or left out }
-- needs: wrong_type time cron

local at = now_us()
local state = { integer(at) }
for number, name in ipairs(ARGV) do
  local f = redis.call('HMGET', CRON .. name, 'due_us', 'disabled_at')
  local due = tonumber(f[1] or '')
  -- What is due while it is disabled is left out for good.
  if not due or f[2] then
    due = at
    redis.call('HSET', CRON .. name, 'due_us', integer(at))
    redis.call('EXPIRE', CRON .. name, CRON_TTL_S)
  end
  state[number + 1] = integer(due)
end
return state
