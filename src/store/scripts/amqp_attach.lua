-- Notes that a repeat of a message is to be answered with the message: while its newest job has not ended,
-- or has failed and comes again from a retry lane.
--
-- ARGV: 1 scope  2 name of all attempts  3 id of the newest job  4 its status  5 id of the next attempt
--       6 the repeat  7 limit on the repeats that wait  8 time in s that they are kept
-- returns 'ok', 'changed' if the job has another status or the next attempt exists, or 'full'

if redis.call('HGET', JOB .. ARGV[3], 'status') ~= ARGV[4] then return 'changed' end
if redis.call('EXISTS', JOB .. ARGV[5]) == 1 then return 'changed' end
local repeats = AMQP_REPEATS .. ARGV[1] .. ':' .. ARGV[2]
if redis.call('LLEN', repeats) >= tonumber(ARGV[7]) then return 'full' end
redis.call('RPUSH', repeats, ARGV[6])
redis.call('EXPIRE', repeats, ARGV[8])
return 'ok'
