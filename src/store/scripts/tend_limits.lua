-- Tends limits that hold jobs: frees slots of jobs that no longer run, and releases held jobs to try
-- again when a rate allows it or a slot may have become free unnoticed.
--
-- ARGV: 1 limit on the number of limits
-- returns { jobs released, slots freed, us until the next look or -1 }
-- needs: wrong_type time job owner sweep limits fair

local SLOTS_CHECKED = 100
local PROBES_MAX = 100
local at = now_us()
local released, freed = 0, 0
despite_full_memory()

local function free_slots(limit)
  local number = 0
  for _, id in ipairs(redis.call('ZRANDMEMBER', LIMIT_RUNNING .. limit, SLOTS_CHECKED)) do
    local f = read(id, 'status', 'boot_id')
    if f[1] ~= 'started' or not is_ours(id, f[2]) then
      redis.call('ZREM', LIMIT_RUNNING .. limit, id)
      number = number + 1
    end
  end
  return number
end

for _, limit in ipairs(redis.call('ZRANGEBYSCORE', LIMITS, '-inf', integer(at), 'LIMIT', 0, ARGV[1])) do
  local slots = free_slots(limit)
  freed = freed + slots
  -- A released job that is not held again has found a slot, or no actor yet. So the next look
  -- releases more; holding one resets the number.
  local probes = tonumber(redis.call('HGET', LIMIT_PROBES, limit) or '') or 1
  local number = math.min(math.max(probes, slots), PROBES_MAX - released)
  released = released + #release_held(limit, number, at)
  if redis.call('EXISTS', LIMIT_HELD .. limit) == 1 then
    redis.call('ZADD', LIMITS, integer(next_probe(at)), limit)
    redis.call('HSET', LIMIT_PROBES, limit, math.min(2 * probes, PROBES_MAX))
    forget_shares(limit)
  else
    redis.call('ZREM', LIMITS, limit)
    redis.call('HDEL', LIMIT_PROBES, limit)
    redis.call('DEL', LIMIT_FAIR .. limit)
  end
end
return { released, freed, us_until_first(LIMITS, at) }
