-- Marks problems of queues and periodic jobs that last or have ended, and tells those that notifications have not told,
-- unless another supervisor has judged meanwhile.
--
-- ARGV: 1 the judgement that it read, '' if there was none  2 this judgement, ms since 1970  3 number of marks  then
--       these: kind and subject, JSON, '' if it has ended; then for each event: number of fields, then these: name, value
-- returns 1, or 0 if nothing was written: judge again
-- needs: wrong_type

local EVENTS_LEN_MAX, TTL_S, MARKS_MAX = 20000, '2592000', 10000
if (redis.call('HGET', NOTIFY_PROBLEMS, 'judged') or '') ~= ARGV[1] then return 0 end
local place = 4
redis.call('HSET', NOTIFY_PROBLEMS, 'judged', ARGV[2])
for _ = 1, tonumber(ARGV[3]) do
  if ARGV[place + 1] == '' then
    redis.call('HDEL', NOTIFY_PROBLEMS, ARGV[place])
  elseif redis.call('HLEN', NOTIFY_PROBLEMS) < MARKS_MAX or redis.call('HEXISTS', NOTIFY_PROBLEMS, ARGV[place]) == 1 then
    redis.call('HSET', NOTIFY_PROBLEMS, ARGV[place], ARGV[place + 1])
  end
  place = place + 2
end
redis.call('EXPIRE', NOTIFY_PROBLEMS, TTL_S)
while place <= #ARGV do
  local last = place + 2 * ARGV[place]
  redis.call('XADD', NOTIFY_EVENTS, 'MAXLEN', '~', EVENTS_LEN_MAX, '*', unpack(ARGV, place + 1, last))
  place = last + 1
end
return 1
