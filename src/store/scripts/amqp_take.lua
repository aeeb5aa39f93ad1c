-- Takes ended jobs whose messages are to be answered. They are taken again if they are not answered
-- within the lease.
--
-- ARGV: 1 scope  2 limit  3 lease in us
-- returns the time in us until which they are taken, as text, then their ids
-- needs: time

local ended = AMQP_ENDED .. ARGV[1]
local at, SLACK_US = now_us(), 1000000
local till_us = at + tonumber(ARGV[3])
local till = integer(till_us)
local taken = redis.call('ZRANGEBYSCORE', ended, '-inf', integer(at), 'LIMIT', 0, ARGV[2])
-- No lease ends later: these are of before the clock was set back.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', ended, integer(till_us + SLACK_US), '+inf', 'LIMIT', 0, ARGV[2])) do
  taken[#taken + 1] = id
end
for _, id in ipairs(taken) do redis.call('ZADD', ended, till, id) end
return { till, taken }
