-- Records what became of an attempt to deliver a message.
--
-- ARGV: 1 id  2 notification  3 'delivered' | 'failed' | 'retrying'  4 JSON of the record  5 for 'retrying' the wait
--       in ms until the next attempt; 'test' for a test, whose failure is no problem of the notification  6 for 'retrying' the JSON of the message
-- returns 1, or 0 if the end of this message was recorded before
-- needs: wrong_type time

local RECENT_MAX, TTL_S = 500, '7776000'
local id, name, state, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('HEXISTS', NOTIFY_MESSAGES, id) == 0 then return 0 end
if state == 'retrying' then
  redis.call('HSET', NOTIFY_MESSAGES, id, ARGV[6])
  -- No whole millisecond, as of a message that is taken: it gathers no events any more.
  local at = now_us()
  redis.call('ZADD', NOTIFY_DUE, integer(at - at % 1000 + ARGV[5] * 1000 + 1), id)
else
  redis.call('HDEL', NOTIFY_MESSAGES, id)
  redis.call('ZREM', NOTIFY_DUE, id)
  redis.call('LPUSH', NOTIFY_RECENT, record)
  redis.call('LTRIM', NOTIFY_RECENT, 0, RECENT_MAX - 1)
  redis.call('EXPIRE', NOTIFY_RECENT, TTL_S)
end
if state == 'delivered' then
  redis.call('HDEL', NOTIFY_TROUBLE, name)
elseif ARGV[5] ~= 'test' then
  redis.call('HSET', NOTIFY_TROUBLE, name, record)
  redis.call('EXPIRE', NOTIFY_TROUBLE, TTL_S)
end
redis.call('HINCRBY', NOTIFY_STATE, 'count:' .. name .. ' ' .. state, 1)
return 1
