-- Renews the presence of a supervisor.
--
-- ARGV: 1 id of its start  2 presence JSON  3 presence TTL in s
-- returns how many supervisors are live
-- needs: wrong_type time sweep

local at, ttl_us = now_us(), tonumber(ARGV[3]) * 1000000
despite_full_memory()
redis.call('SET', SUPERVISOR .. ARGV[1], ARGV[2], 'EX', ARGV[3])
redis.call('ZADD', SUPERVISORS, integer(at), ARGV[1])
redis.call('ZREMRANGEBYSCORE', SUPERVISORS, '-inf', integer(at - ttl_us))
return redis.call('ZCARD', SUPERVISORS)
