-- Reads the state of periodic jobs. A new or disabled one counts from now on.
--
-- ARGV: the names
-- returns { now in us, then for each name six texts: the time in us up to which it was fired or left out; '1' if it is
--           disabled, else '0'; the time in us where its lateness starts; the times of its last success, of
--           its last duration, and from which it is overdue; '' for what is not known }
-- needs: wrong_type time cron cron_counted

local at = now_us()
local state = { integer(at) }
for _, name in ipairs(ARGV) do
  local f = redis.call('HMGET', CRON .. name, 'due_us', 'disabled_at')
  local due = tonumber(f[1] or '')
  -- What is due while it is disabled is left out for good.
  if not due or f[2] then
    due = at
    redis.call('HSET', CRON .. name, 'due_us', integer(at))
    redis.call('EXPIRE', CRON .. name, CRON_TTL_S)
  end
  local ended = redis.call('HMGET', CRON_ENDED .. name, 'since_us', 'succeeded_us', 'took_us', 'overdue_us')
  if not ended[1] then
    count_from(name, at)
    ended[1], ended[4] = integer(at), ''
  end
  state[#state + 1] = integer(due)
  state[#state + 1] = f[2] and '1' or '0'
  for number = 1, 4 do state[#state + 1] = ended[number] or '' end
end
return state
