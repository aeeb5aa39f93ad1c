-- Takes ended jobs whose messages are to be answered. They are taken again if they are not answered
-- within the lease.
--
-- ARGV: 1 scope  2 limit  3 lease in us
-- returns the time in us until which they are taken, as text, then their ids
-- needs: time

local ended = AMQP_ENDED .. ARGV[1]
local at = now_us()
local till = integer(at + tonumber(ARGV[3]))
local taken = redis.call('ZRANGEBYSCORE', ended, '-inf', integer(at), 'LIMIT', 0, ARGV[2])
for _, id in ipairs(taken) do redis.call('ZADD', ended, till, id) end
return { till, taken }
