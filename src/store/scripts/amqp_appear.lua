-- Notes the state of a broker of RabbitMQ, and forgets those that were noted too long ago.
--
-- ARGV: 1 scope  2 name of the broker  3 its state, JSON  4 time in s that a state is kept
-- returns the number of brokers that were forgotten
-- needs: time

local LOOKED_AT = 1000
local brokers, at = AMQP_BROKERS .. ARGV[1], now_us()
redis.call('HSET', brokers, ARGV[2], integer(at) .. ' ' .. ARGV[3])
redis.call('EXPIRE', brokers, ARGV[4])
if redis.call('HLEN', brokers) > LOOKED_AT then return 0 end
local forgotten, all = 0, redis.call('HGETALL', brokers)
for place = 1, #all, 2 do
  local noted = tonumber(string.match(all[place + 1], '^%d+')) or 0
  if noted < at - tonumber(ARGV[4]) * 1000000 then
    forgotten = forgotten + redis.call('HDEL', brokers, all[place])
  end
end
return forgotten
