-- Fair limits: who is next of those that a limit shares its slots among: its callers, keys, contexts or groups. A held job has
-- a share in place of the time of its dispatch: a step behind the last one of the same caller, and not before the first of
-- all held jobs, so that a caller who appears has the next turn, and none saves turns. A step is shorter with more weight.
-- This is start-time fair queueing (Goyal, Vin, Cheng 1996).
--
--   LIMIT_FAIR..limit  by caller, '=CALLER' or '#HASH', the share of its next job; '@ID', the place of a job that was released
--                      and has no slot yet
-- needs: time job limits

local fair_place, hold_fairly, forget_shares
do
  local STEP = 1000000

  local function first_share(name)
    local first = redis.call('ZRANGE', LIMIT_HELD .. name, 0, 0, 'WITHSCORES')
    return first[1] and tonumber(first[2]) - held_score(string.match(first[1], '^%S+'), 0) or 0
  end

  -- Returns the place of a job among those that a fair limit holds, and its share if it is new.
  function fair_place(limit, id, queue)
    local f = redis.call('HMGET', LIMIT_FAIR .. limit.name, '@' .. id, limit.sharer)
    if f[1] then return tonumber(f[1]) end
    local share = math.max(first_share(limit.name), tonumber(f[2] or '') or 0)
    return held_score(queue, share), share
  end

  -- Notes that a job is held. One that is held again has no new share.
  function hold_fairly(limit, id, share)
    local key = LIMIT_FAIR .. limit.name
    if share then
      redis.call('HSET', key, limit.sharer, integer(share + math.floor(STEP / limit.weight)))
    else
      redis.call('HDEL', key, '@' .. id)
    end
  end

  -- Forgets the shares of callers who have held no job for long, and of released jobs that have ended: some of them.
  function forget_shares(name)
    local LOOKED_AT = 20
    local first, some = first_share(name), redis.call('HRANDFIELD', LIMIT_FAIR .. name, LOOKED_AT, 'WITHVALUES')
    for place = 1, #some, 2 do
      local released = string.match(some[place], '^@(.*)$')
      local is_past = (tonumber(some[place + 1]) or 0) <= first
      if released then is_past = read(released, 'status')[1] ~= 'dispatched' end
      if is_past then redis.call('HDEL', LIMIT_FAIR .. name, some[place]) end
    end
  end
end
