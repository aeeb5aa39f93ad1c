-- Notes that the messages of jobs were answered, or that others are to try. A job that ended again
-- meanwhile stays as it is.
--
-- ARGV: 1 scope  2 the time until which they are taken, as `amqp_take` returned it
--       3 'done', or the wait in us before they may be taken again, then ids
-- returns the number of ids that were still taken
-- needs: time

local ended = AMQP_ENDED .. ARGV[1]
local again = tonumber(ARGV[3])
local at, changed = again and now_us(), 0
for number = 4, #ARGV do
  local score = redis.call('ZSCORE', ended, ARGV[number])
  if score and integer(tonumber(score)) == ARGV[2] then
    changed = changed + 1
    if again then
      redis.call('ZADD', ended, integer(at + again), ARGV[number])
    else
      redis.call('ZREM', ended, ARGV[number])
    end
  end
end
return changed
