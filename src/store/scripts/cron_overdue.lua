-- Notes from when on a periodic job is overdue, and that it is one: its name stands in a list, from which
-- those who may not read its schedule know it.
--
-- ARGV: 1 name  2 the time in us from which its lateness was counted  3 how long two of its firings take, in us
--       4 the time in us from which it is overdue
-- returns 1; 0 if its state has changed meanwhile
-- needs: wrong_type time cron

local NAMES_MAX = 2000
local key = CRON_ENDED .. ARGV[1]
local f = redis.call('HMGET', key, 'since_us', 'succeeded_us')
local from = math.max(tonumber(f[1] or '') or 0, tonumber(f[2] or '') or 0)
if from ~= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', key, 'twice_us', ARGV[3], 'overdue_us', ARGV[4])
redis.call('EXPIRE', key, CRON_TTL_S)
redis.call('ZADD', CRON_NAMES, integer(now_us()), ARGV[1])
redis.call('ZREMRANGEBYRANK', CRON_NAMES, 0, -NAMES_MAX - 1)
return 1
