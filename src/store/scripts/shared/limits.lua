-- Limits: how many jobs may run at once, how many may start within a time. A job without a slot is
-- held: it stays `dispatched`, leaves its queue and the ready index, and stands in the queue's index
-- of held jobs until a slot is free.
--
-- A limit is called NAME, or NAME=VALUE where it counts separately; @TYPE/GROUP/INSTANCE is the
-- serial lane of an actor. For each limit:
--   LIMIT_RUNNING..limit  jobs that have a slot, by their start
--   LIMIT_STARTS..limit   starts within the period of its rate
--   LIMIT_HELD..limit     'QUEUE ID' of held jobs, by priority, and then by dispatch: see held_score; of a fair limit by
--                         the share of the job: see fair.lua
-- and for all of them:
--   LIMITS                those that hold jobs, by when to look at them next
--   LIMIT_PROBES          how many held jobs the next look releases, if not one
-- needs: time names routing job owner index foreign_start wake

local next_probe, held_score, release_held, leave_limits
do
  -- A slot may become free unnoticed, so a held job is released to try again about this often. The time
  -- varies: at a fixed one, the same actor of several with different limits could take the job each time.
  function next_probe(at)
    local PROBE_US, PROBE_SPREAD_US = 2000000, 1000000
    return at + PROBE_US + at % PROBE_SPREAD_US - PROBE_SPREAD_US / 2
  end

  -- Twice the time of now, so that urgent jobs come before all others in one sorted set, and background ones behind.
  local PRIORITY_US = 3000000000000000

  -- The place of a job among those that its limit holds, by its queue and dispatch.
  function held_score(queue, dispatched)
    local priority = parts_of_queue(queue).priority
    return dispatched + (priority == '0' and -PRIORITY_US or priority == '2' and PRIORITY_US or 0)
  end

  -- Releases the first held jobs of a limit. Returns the ids of those that went to their queues.
  function release_held(limit, number, at)
    -- A released job belongs before all jobs dispatched after it; so many at the head are looked at.
    local RELEASED_AHEAD = 100
    -- Puts a released job into its queue at the place of its dispatch.
    local function push_in_order(id, queue, score)
      register(TYPES, type_of_queue(queue))
      register(QUEUES, queue)
      redis.call('ZADD', READY .. queue, integer(score), id)
      wake(queue)
      local ahead = redis.pcall('LRANGE', WORK .. queue, 0, RELEASED_AHEAD - 1)
      if ahead.err then return end
      for _, other in ipairs(ahead) do
        local dispatched = redis.call('ZSCORE', READY .. queue, other)
        if dispatched and tonumber(dispatched) > score then
          redis.call('LINSERT', WORK .. queue, 'BEFORE', other, id)
          return
        end
      end
      local last = #ahead == RELEASED_AHEAD and redis.call('LINDEX', WORK .. queue, -1)
      if not last or (tonumber(redis.call('ZSCORE', READY .. queue, last) or '') or math.huge) < score then
        redis.call('RPUSH', WORK .. queue, id)
      else
        redis.call('LINSERT', WORK .. queue, 'AFTER', ahead[#ahead], id)
      end
    end

    if number < 1 then return {} end
    local entries = redis.call('ZRANGE', LIMIT_HELD .. limit, 0, number - 1, 'WITHSCORES')
    local released, is_fair = {}, #entries > 0 and redis.call('EXISTS', LIMIT_FAIR .. limit) == 1
    for place = 1, #entries, 2 do
      local queue, id = string.match(entries[place], '^(%S+) (%S+)$')
      redis.call('ZREM', LIMIT_HELD .. limit, entries[place])
      local dispatched = queue and redis.call('ZSCORE', HELD .. queue, id)
      if queue and is_fair then redis.call('HSET', LIMIT_FAIR .. limit, '@' .. id, entries[place + 1]) end
      if queue and redis.call('ZREM', HELD .. queue, id) == 1 then
        local f = read(id, 'status', 'boot_id')
        if f[1] then redis.call('HDEL', JOB .. id, 'held_by') end
        if f[1] == 'dispatched' then
          push_in_order(id, queue, tonumber(dispatched))
          released[#released + 1] = id
        elseif f[1] and not is_ours(id, f[2]) and redis.call('PTTL', JOB .. id) < 0 then
          -- A foreign actor has started or ended it: a sweep tends it.
          note_foreign_start(id, type_of_queue(queue), at)
        end
      end
    end
    return released
  end

  -- Frees the slots of a job and releases held jobs. `limits` is its field. Called before the job goes
  -- back to its queue, or it would stand after them.
  function leave_limits(id, limits, at)
    if not present(limits) then return end
    redis.call('HDEL', JOB .. id, 'limits')
    for limit in string.gmatch(limits, '%S+') do
      if legal_limit(limit) and redis.call('ZREM', LIMIT_RUNNING .. limit, id) == 1 then
        release_held(limit, 1, at)
      end
    end
  end
end
