-- Tells the brokers of RabbitMQ that a job which was a message has ended.
-- needs: time

local function tell_brokers(id, at)
  local ttl_s = 7 * 86400
  local scope = redis.call('HGET', JOB .. id, 'amqp_scope')
  if not scope or scope == '' or #scope > 300 then return end
  -- If a key has the wrong type, only the answer is lost.
  redis.pcall('ZADD', AMQP_ENDED .. scope, integer(at), id)
  redis.pcall('EXPIRE', AMQP_ENDED .. scope, ttl_s)
  -- One entry wakes one broker, and that one answers all. No scope begins with this sign.
  local bell = AMQP_ENDED .. '@' .. scope
  if redis.pcall('LLEN', bell) == 0 then
    redis.pcall('RPUSH', bell, '1')
    redis.pcall('EXPIRE', bell, ttl_s)
  end
end
