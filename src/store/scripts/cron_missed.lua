-- Notes firings of a periodic job that are left out because no supervisor ran at their times: in its history, as one.
--
-- ARGV: 1 name  2 the time in us up to which it was fired or left out  3 the due time in us of the latest of them
--       4 their number  5 ' or more' if more are not counted, else ''
-- returns 1; 0 if another supervisor noted them
-- needs: wrong_type time cron

local key, due = CRON .. ARGV[1], tonumber(ARGV[3])
local f = redis.call('HMGET', key, 'due_us', 'history', 'disabled_at')
if f[3] or tonumber(f[1] or '') ~= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', key, 'due_us', ARGV[3])
redis.call('HINCRBY', key, 'missed', ARGV[4])
redis.call('EXPIRE', key, CRON_TTL_S)
local why = ARGV[4] == '1' and 'no supervisor ran' or ARGV[4] .. ' firings' .. ARGV[5] .. ': no supervisor ran'
remember(key, f[2], { due = rfc3339(due), at = rfc3339(now_us()), did = 'missed', why = why })
return 1
