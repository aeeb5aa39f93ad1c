-- Tracks since when indexes of objects have been declared by no supervisor.
--
-- ARGV: 1 length of the period in us  2 number of declared indexes
--       3... the names of these, as `type:field`, then the names of indexes that exist undeclared
-- returns the names of indexes that have been undeclared for the period
-- needs: time

local long, declared, now = tonumber(ARGV[1]), tonumber(ARGV[2]), now_us()

for place = 3, 2 + declared do redis.call('HDEL', OSIS_UNDECLARED, ARGV[place]) end
-- An index not reported for as long is gone, or was declared meanwhile.
local seen = redis.call('HGETALL', OSIS_UNDECLARED)
for place = 1, #seen, 2 do
  local last = tonumber(string.match(seen[place + 1], '%d+$')) or 0
  if now - last >= long then redis.call('HDEL', OSIS_UNDECLARED, seen[place]) end
end

local gone = {}
for place = 3 + declared, #ARGV do
  local name = ARGV[place]
  local times = redis.call('HGET', OSIS_UNDECLARED, name) or ''
  local first = string.match(times, '^%d+') or integer(now)
  redis.call('HSET', OSIS_UNDECLARED, name, first .. ' ' .. integer(now))
  redis.call('PEXPIRE', OSIS_UNDECLARED, integer(2 * long / 1000))
  if now - tonumber(first) >= long then gone[#gone + 1] = name end
end
return gone
