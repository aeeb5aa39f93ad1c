-- Control messages for actors.
-- needs: wrong_type time

local CONTROL_WORDS, is_supervised, tell_actor, tell_actors_of, told_together
do
  local CONTROL_LEN_MAX = 10000
  local CONTROL_TTL_S = 86400

  local SUPERVISOR_US = 15000000

  -- Texts that are orders and no ids.
  CONTROL_WORDS = { stop = true, drain = true, resume = true, shutdown = true, wake = true, ping = true }

  -- Tells if a supervisor is live, which hands on the messages for a type. One counts as live if the key cannot be
  -- read: an access list of an older version does not permit it.
  function is_supervised(at)
    local live = redis.pcall('ZCOUNT', SUPERVISORS, integer(at - SUPERVISOR_US), '+inf')
    return type(live) ~= 'number' or live > 0
  end

  -- Appends messages to the control list of one actor.
  function tell_actor(list, messages)
    redis.call('RPUSH', list, unpack(messages))
    redis.call('LTRIM', list, -CONTROL_LEN_MAX, -1)
    redis.call('EXPIRE', list, CONTROL_TTL_S)
  end

  -- Sends messages to every actor of a type, or of a group of it, that was seen within a time. Returns their
  -- number.
  function tell_actors_of(script_type, only_group, messages, at, within_us)
    local told = 0
    for _, actor in ipairs(redis.call('ZRANGEBYSCORE', ACTORS, integer(at - within_us), '+inf')) do
      local own, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
      if own == script_type and (not only_group or group == only_group) then
        tell_actor(CONTROL .. own .. ':group:' .. group .. ':inst:' .. instance, messages)
        told = told + 1
      end
    end
    return told
  end

  -- Returns the types, and the groups of them whose actors were seen within a day: TYPE, TYPE:group:GROUP.
  -- Each has a list of control messages.
  function told_together(types)
    local actors_max = 1000
    local all, is_wanted, seen = {}, {}, {}
    for place, script_type in ipairs(types) do all[place], is_wanted[script_type] = script_type, true end
    for _, actor in ipairs(redis.call('ZREVRANGE', ACTORS, 0, actors_max - 1)) do
      local own, group = string.match(actor, '^([^:]+):([^:]+):[^:]+$')
      local name = own and own .. ':group:' .. group
      if name and is_wanted[own] and not seen[name] then all[#all + 1], seen[name] = name, true end
    end
    return all
  end
end
