-- Restores what notifications have to tell. What exists stays as it is.
--
-- ARGV: 1 number of messages, then for each: id, time when it is due in ms, JSON  then the number of events, and for each: id,
--       number of fields and values, these  then names of jobs of which the last one failed, each with its time in us
-- returns 'ok'
-- needs: wrong_type time

local EVENTS_LEN_MAX, TTL_S = 20000, '2592000'
local place = 2
for _ = 1, tonumber(ARGV[1]) do
  if redis.call('HEXISTS', NOTIFY_MESSAGES, ARGV[place]) == 0 then
    redis.call('HSET', NOTIFY_MESSAGES, ARGV[place], ARGV[place + 2])
    redis.call('ZADD', NOTIFY_DUE, integer(ARGV[place + 1] * 1000), ARGV[place])
  end
  place = place + 3
end
local events = tonumber(ARGV[place])
place = place + 1
for _ = 1, events do
  local last = place + 1 + ARGV[place + 1]
  local function add(id)
    return redis.pcall('XADD', NOTIFY_EVENTS, 'MAXLEN', '~', EVENTS_LEN_MAX, id, unpack(ARGV, place + 2, last))
  end
  local added = add(ARGV[place])
  -- The namespace has had later events.
  if type(added) == 'table' and added.err then add('*') end
  place = last + 1
end
for name = place, #ARGV, 2 do
  if redis.call('HEXISTS', NOTIFY_FAILING, ARGV[name]) == 0 then
    redis.call('HSET', NOTIFY_FAILING, ARGV[name], ARGV[name + 1])
  end
end
if place <= #ARGV then redis.call('EXPIRE', NOTIFY_FAILING, TTL_S) end
return 'ok'
