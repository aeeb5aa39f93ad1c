-- Looks after limits that hold jobs: takes back places of jobs that do not run any more, and lets
-- held jobs try, since the time of a rate has come, or a place may be free that nobody told of.
--
-- ARGV: 1 how many limits at the most
-- returns { jobs that went to their queues, places taken back, us until the next look or -1 }
-- needs: time job owner sweep limits

local PLACES_LOOKED_AT = 100
local PROBES_MAX = 500
local at = now_us()
local released, taken_back = 0, 0
despite_full_memory()

local function take_back_places(limit)
  local number = 0
  for _, id in ipairs(redis.call('ZRANDMEMBER', LIMIT_RUNNING .. limit, PLACES_LOOKED_AT)) do
    local f = read(id, 'status', 'boot_id')
    if f[1] ~= 'started' or not is_ours(id, f[2]) then
      redis.call('ZREM', LIMIT_RUNNING .. limit, id)
      number = number + 1
    end
  end
  return number
end

for _, limit in ipairs(redis.call('ZRANGEBYSCORE', LIMITS, '-inf', integer(at), 'LIMIT', 0, ARGV[1])) do
  local places = take_back_places(limit)
  taken_back = taken_back + places
  -- One that was let try and is not held again may have found a place, or nobody to take it. The
  -- next time more may try: whoever holds one of them says that it was too many.
  local probes = tonumber(redis.call('HGET', LIMIT_PROBES, limit) or '') or 1
  released = released + #release_held(limit, math.max(probes, places), at)
  if redis.call('EXISTS', LIMIT_HELD .. limit) == 1 then
    redis.call('ZADD', LIMITS, integer(at + PROBE_US), limit)
    redis.call('HSET', LIMIT_PROBES, limit, math.min(2 * probes, PROBES_MAX))
  else
    redis.call('ZREM', LIMITS, limit)
    redis.call('HDEL', LIMIT_PROBES, limit)
  end
end
local first = redis.call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')
return { released, taken_back, first[2] and math.max(tonumber(first[2]) - at, 0) or -1 }
