-- Stages jobs of an atomic batch under keys that no reader of jobs knows. They expire if the commit
-- never comes.
--
-- ARGV: 1 batch id  2 TTL in s  3 number of jobs, then for each: id,
--       number of entries of its pending set, these; number of dependents without room in its
--       field, these; number of fields and values, these, the last two 'created_at', '';
--       its status is final if it waits for another job of the batch
-- returns how many jobs of the batch are staged by now
-- needs: time

-- Jobs outlive the count of jobs: while it exists, all of them do.
local MARGIN_S = 60
local batch, ttl_s = STAGED .. ARGV[1], tonumber(ARGV[2])
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

local stored = redis.call('INCRBY', batch, ARGV[3])
if stored == tonumber(ARGV[3]) then redis.call('EXPIRE', batch, ttl_s) end
for _ = 1, tonumber(ARGV[3]) do
  local key = batch .. ':' .. ARGV[next_arg]
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
