-- Control messages for actors.
-- needs: wrong_type time

local CONTROL_LEN_MAX = 10000
local CONTROL_TTL_S = 86400

local SUPERVISOR_US = 15000000

-- Tells if a supervisor is live, which hands on the messages for a type. One counts as live if the key cannot be
-- read: an access list of an older version does not permit it.
local function is_supervised(at)
  local live = redis.pcall('ZCOUNT', SUPERVISORS, integer(at - SUPERVISOR_US), '+inf')
  return type(live) ~= 'number' or live > 0
end

-- Appends messages to the control list of one actor.
local function tell_actor(list, messages)
  redis.call('RPUSH', list, unpack(messages))
  redis.call('LTRIM', list, -CONTROL_LEN_MAX, -1)
  redis.call('EXPIRE', list, CONTROL_TTL_S)
end

-- Sends messages to every actor of a type that was seen within a time.
local function tell_actors_of(script_type, messages, at, within_us)
  for _, actor in ipairs(redis.call('ZRANGEBYSCORE', ACTORS, integer(at - within_us), '+inf')) do
    local own, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
    if own == script_type then
      tell_actor(CONTROL .. own .. ':group:' .. group .. ':inst:' .. instance, messages)
    end
  end
end
