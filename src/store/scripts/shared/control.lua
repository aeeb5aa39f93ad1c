-- Control messages for actors.
-- needs: time

local CONTROL_LEN_MAX = 10000
local CONTROL_TTL_S = 86400

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
