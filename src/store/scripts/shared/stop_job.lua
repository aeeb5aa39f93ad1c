-- Stops a job. Takes the arguments of stop.lua, and returns what that
-- script returns.
-- needs: wrong_type time names routing job owner counters legacy leave ending dependents control foreign_actors

local stop_job
do
  -- Tells the foreign programs that serve a type to stop a job, which names no actor: by the bare id, in the
  -- lists of the type and of each of its foreign actors. Returns false if there are none.
  local function tell_foreign_actors(id, script_type)
    local STOP_TTL_S = 60
    local actors = script_type and foreign_actors_of(script_type) or {}
    if #actors == 0 then return false end
    local lists = { CONTROL .. script_type }
    for place, actor in ipairs(actors) do
      local _, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
      lists[place + 1] = CONTROL .. script_type .. ':group:' .. group .. ':inst:' .. instance
    end
    -- An actor of Hero that reads the list takes a word for an order.
    local message = CONTROL_WORDS[id] and cjson.encode({ cmd = 'stop', job_id = id }) or id
    for _, list in ipairs(lists) do
      redis.pcall('RPUSH', list, message)
      redis.pcall('EXPIRE', list, STOP_TTL_S)
    end
    return true
  end

  -- Marks a running job that was told to stop: the next step that could run it again ends it, also if the message is
  -- lost.
  local function mark_stop(id) redis.call('HSET', JOB .. id, 'stop_requested', '1') end

  function stop_job(args)
    local id, retention = args[1], args[2]
    local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'boot_id', 'actor',
      'reply', 'unique_key', 'dependents', 'retention', 'legacy', 'where')
    local status = f[1]
    if not status then return 'missing' end
    if status == 'finished' or status == 'error' then return 'ended' end

    -- Only the old worker can stop a job that it has started or popped.
    if LEGACY and f[12] and (status == 'started' and not is_ours(id, f[6])
        or status == 'dispatched' and not remove_copy(id, f[12])) then
      return tell_old_worker(id, f[12]) and 'requested' or 'unowned'
    end
    if LEGACY and status == 'dispatched' and not f[12] then
      for _, queue in ipairs(LEGACY) do redis.pcall('LREM', queue.list, 1, id) end
    end

    if present(args[6]) then redis.call('HSET', JOB .. id, 'stopped_by', args[6]) end
    if status == 'started' then
      if args[4] ~= '' then
        if f[6] == args[4] then
          mark_stop(id)
          return 'yours'
        end
        -- If the actor that runs the job no longer holds its name, the stop would only come back.
        local presence = json_table(redis.pcall('GET', PRESENCE .. (f[7] or '')))
        if not presence or presence.boot_id ~= f[6] then
          mark_stop(id)
          return 'requested'
        end
      end
      local script_type, group, instance = string.match(f[7] or '', '^([^:]+):([^:]+):([^:]+)$')
      local queue = queue_of(script_type, group, instance)
      if not queue then
        -- An actor that asks was told by the list of its type.
        if args[4] ~= '' or not tell_foreign_actors(id, legal_type(f[2])) then return 'unowned' end
        mark_stop(id)
        return 'requested'
      end
      mark_stop(id)
      tell_actor(CONTROL .. string.sub(queue, #'type:' + 1), { args[3] })
      return 'requested'
    end

    local at = now_us()
    -- A raw client may have left the type to the actor: only a claim knows the queue, and skips it.
    local script_type = legal_type(f[2]) or 'unknown'
    leave_index(id, status, script_type, { group = f[3], instance = f[4], priority = f[5], boot_id = f[6], where = f[13] })
    redis.call('DEL', PENDING .. id)
    redis.call('HDEL', JOB .. id, 'wait')
    local job = { script_type = script_type, reply = f[8], unique_key = f[9], retention = f[11] }
    end_job(id, job, 'error', args[5] or 'stopped', nil, at, retention)
    if present(f[10]) then
      tell_dependents({ { id = id, status = 'error', dependents = f[10] } }, at, retention)
    end
    write_counts()
    return 'stopped'
  end
end
