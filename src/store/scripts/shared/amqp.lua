-- Tells the brokers of RabbitMQ that a job which was a message has ended.
-- needs: time

-- Prefix of the ids of jobs made from messages.
local AMQP_JOB = 'amqp-'
local AMQP_TTL_S = 7 * 86400

local function tell_brokers(id, at)
  local scope = redis.call('HGET', JOB .. id, 'amqp_scope')
  if not scope or scope == '' or #scope > 300 then return end
  -- If a key has the wrong type, only the answer is lost.
  redis.pcall('ZADD', AMQP_ENDED .. scope, integer(at), id)
  redis.pcall('EXPIRE', AMQP_ENDED .. scope, AMQP_TTL_S)
  -- One entry wakes one broker, and that one answers all.
  if redis.pcall('LLEN', AMQP_BELL .. scope) == 0 then
    redis.pcall('RPUSH', AMQP_BELL .. scope, '1')
    redis.pcall('EXPIRE', AMQP_BELL .. scope, AMQP_TTL_S)
  end
end
