-- Stores some of the jobs of a whole, which is submitted all or none, beside the others: under keys
-- that no reader of jobs knows. They expire, should the commit never come.
--
-- ARGV: 1 the whole's id  2 how long its parts stay, in s  3 how many jobs, then for each: id,
--       how many entries its pending set has, these; how many dependents have no room in its
--       field, these; how many fields and values, these, the last two 'created_at', '';
--       its status is that of a job which waits, if it waits for another of the whole
-- returns how many jobs of the whole are stored by now
-- needs: time

-- A job outlives the count of the whole's jobs: where that is, they all are.
local MARGIN_S = 60
local whole, ttl_s = STAGED .. ARGV[1], tonumber(ARGV[2])
local when = rfc3339(now_us())
local next_arg = 4

local function some()
  local first = next_arg + 1
  next_arg = first + tonumber(ARGV[next_arg])
  return first, next_arg - 1
end

local function add(command, key, first, last)
  for from = first, last, 1000 do
    redis.call(command, key, unpack(ARGV, from, math.min(from + 999, last)))
  end
  if last >= first then redis.call('EXPIRE', key, ttl_s + MARGIN_S) end
end

local stored = redis.call('INCRBY', whole, ARGV[3])
if stored == tonumber(ARGV[3]) then redis.call('EXPIRE', whole, ttl_s) end
for _ = 1, tonumber(ARGV[3]) do
  local key = whole .. ':' .. ARGV[next_arg]
  next_arg = next_arg + 1
  local first, last = some()
  add('SADD', key .. ':pending', first, last)
  first, last = some()
  add('RPUSH', key .. ':dependents', first, last)
  first, last = some()
  ARGV[last] = when
  redis.call('HSET', key, unpack(ARGV, first, last))
  redis.call('EXPIRE', key, ttl_s + MARGIN_S)
end
return stored
