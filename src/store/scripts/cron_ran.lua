-- Notes that a person or program ran a periodic job beside its schedule: in its history, and as its latest run.
-- The end of the job, which may have come already, counts as the end of a firing.
-- The next firing treats it as the job of the last one.
--
-- ARGV: 1 name  2 id of the job, or of the batch  3 'batch', or ''
-- returns 1
-- needs: wrong_type time names job cron cron_end

local key, at = CRON .. ARGV[1], now_us()
local history = redis.call('HGET', key, 'history')
local now = rfc3339(at)
remember(key, history, { due = now, at = now, did = 'fired', id = ARGV[2], why = 'run now',
  batch = ARGV[3] == 'batch' or nil })
redis.call('HSET', key, 'ran_us', integer(at), 'ran_id', ARGV[2])
if ARGV[3] == 'batch' then redis.call('HSET', key, 'batch_id', ARGV[2]) end
redis.call('HINCRBY', key, 'fired', 1)
redis.call('EXPIRE', key, CRON_TTL_S)
local f = read(ARGV[2], 'status', 'error')
if f[1] then redis.call('HSET', JOB .. ARGV[2], 'cron', ARGV[1]) end
if f[1] == 'finished' or f[1] == 'error' then note_cron_end(ARGV[1], ARGV[2], f[1], f[2], at) end
return 1
