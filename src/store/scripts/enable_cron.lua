-- Enables or disables a periodic job. While it is disabled, no firing is due; what was missed meanwhile is
-- not made up for.
--
-- ARGV: 1 name  2 'enable' | 'disable'  3 who asks
-- returns 1 if that changed it, else 0
-- needs: wrong_type time cron cron_counted

local key, at = CRON .. ARGV[1], now_us()
local is_disabled = redis.call('HEXISTS', key, 'disabled_at') == 1
if is_disabled == (ARGV[2] == 'disable') then return 0 end
redis.call('HSET', key, 'due_us', integer(at))
if is_disabled then
  redis.call('HDEL', key, 'disabled_at', 'disabled_by')
else
  redis.call('HSET', key, 'disabled_at', rfc3339(at), 'disabled_by', ARGV[3])
end
redis.call('EXPIRE', key, CRON_TTL_S)
count_from(ARGV[1], at)
return 1
