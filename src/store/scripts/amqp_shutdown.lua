-- Tells the brokers of a scope to end: those that started before.
--
-- ARGV: 1 scope  2 node, '*' for all
-- returns the time in us, as text
-- needs: time

local TTL_S = 86400
local at = integer(now_us())
redis.call('HSET', AMQP_SHUTDOWN .. ARGV[1], ARGV[2], at)
redis.call('EXPIRE', AMQP_SHUTDOWN .. ARGV[1], TTL_S)
return at
