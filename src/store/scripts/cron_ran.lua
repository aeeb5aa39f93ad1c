-- Notes that a person or program ran a periodic job beside its schedule: in its history, and as its latest run.
-- Overlaps look at the job of the last due time alone.
--
-- ARGV: 1 name  2 id of the job
-- returns 1
-- needs: wrong_type time cron

local key, at = CRON .. ARGV[1], now_us()
local history = redis.call('HGET', key, 'history')
local now = rfc3339(at)
remember(key, history, { due = now, at = now, did = 'fired', id = ARGV[2], why = 'run now' })
redis.call('HSET', key, 'ran_us', integer(at), 'ran_id', ARGV[2])
redis.call('HINCRBY', key, 'fired', 1)
redis.call('EXPIRE', key, CRON_TTL_S)
return 1
