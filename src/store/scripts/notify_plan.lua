-- Writes the messages that tell the events which one supervisor has read, and how far it read, unless another one
-- did so meanwhile.
--
-- ARGV: 1 revision of the state that it read  2 number of fields of the state  then these: field, value; then for
--       each message: id, time when it is due in ms, 'new' | 'join' for one that gathers further events, JSON
-- returns 1, or 0 if nothing was written: read and decide again
-- needs: wrong_type time

local at = now_us()
-- The score of a message that has been taken is its lease, or the time of its next attempt, and no whole millisecond.
local function gathers(id, due_us)
  return due_us > at and tonumber(redis.call('ZSCORE', NOTIFY_DUE, id) or nil) == due_us
end
if (redis.call('HGET', NOTIFY_STATE, 'revision') or '0') ~= ARGV[1] then return 0 end
local first = 3 + 2 * ARGV[2]
for place = first, #ARGV, 4 do
  if ARGV[place + 2] == 'join' and not gathers(ARGV[place], ARGV[place + 1] * 1000) then return 0 end
end
redis.call('HINCRBY', NOTIFY_STATE, 'revision', 1)
for place = 3, first - 1, 2 do redis.call('HSET', NOTIFY_STATE, ARGV[place], ARGV[place + 1]) end
for place = first, #ARGV, 4 do
  redis.call('HSET', NOTIFY_MESSAGES, ARGV[place], ARGV[place + 3])
  redis.call('ZADD', NOTIFY_DUE, integer(ARGV[place + 1] * 1000), ARGV[place])
end
return 1
