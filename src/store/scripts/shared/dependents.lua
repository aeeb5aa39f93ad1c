-- Tells dependents that their prerequisite has ended.
-- needs: wrong_type time names routing job index events queue ending illegal prerequisites awaited waits

local dispatch_or_schedule, tell_dependents
do
  -- Dependents that one script tells; `settle` tells the others.
  local DEPENDENTS_PER_STEP = 250

  -- Dispatches or schedules a job without pending prerequisites. Returns its state.
  function dispatch_or_schedule(id, queue, run_at_us, at)
    local run_at = tonumber(run_at_us or '') or 0
    if run_at > at then
      log_event(id, 'scheduled')
      redis.call('HSET', JOB .. id, 'status', 'scheduled')
      enter('scheduled', type_of_queue(queue), id, run_at)
      return 'scheduled'
    end
    log_event(id, 'dispatched')
    redis.call('HSET', JOB .. id, 'status', 'dispatched')
    push_back(id, queue, at)
    return 'dispatched'
  end

  -- Tells the dependents of ended jobs, a list of {id, status, dependents}, and theirs in turn; those
  -- beyond one step's share go to SETTLING. A prerequisite counts once: it leaves the pending set.
  -- Returns true if some are left, or callbacks of a graph.
  function tell_dependents(ended, at, retention)
    local some_are_left = false
    -- Leaves dependents to a later step, with all that it needs: the job may be deleted before.
    local function leave(entry)
      redis.call('RPUSH', SETTLING, cjson.encode(entry))
      some_are_left = true
    end
    local function settle_later(ended, dependents, from, list)
      local left = {}
      for place = from, #dependents do left[#left + 1] = dependents[place] end
      if #left > 0 or list then
        leave({ id = ended.id, status = ended.status, left = left, list = list })
      end
    end

    -- Removes an ended prerequisite from a pending set. Returns true if it was there, and true if the
    -- job cannot run any more.
    local function no_longer_pending(id, prerequisite, outcome)
      if outcome == 'finished' then
        return redis.call('SREM', PENDING .. id, prerequisite, ANY .. prerequisite) > 0, false
      end
      if redis.call('SREM', PENDING .. id, prerequisite) == 1 then return true, true end
      return redis.call('SREM', PENDING .. id, ANY .. prerequisite) == 1, false
    end

    -- Tells one dependent; `is_late` if the hash of its prerequisite may not name it. Returns its own dependents if
    -- it failed.
    local function tell(id, prerequisite, outcome, at, retention, is_late)
      local waited, in_vain = no_longer_pending(id, prerequisite, outcome)
      local is_lost = has_wrong_type[PENDING .. id]
      if not waited and not is_lost then
        -- The prerequisite ran again while it waits for something else.
        if has_not_ended(id) then keep_for(prerequisite, is_late and id) end
        return nil
      end
      local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'run_at',
        'reply', 'unique_key', 'dependents', 'retention', 'graph_id', 'wait', 'where')
      local job = {
        script_type = legal_type(f[2]), reply = f[7], unique_key = f[8], retention = f[10],
        graph_id = f[11] }
      local queue = queue_of(f[2], f[3], f[4], f[5], f[13])
      local wait = f[1] == 'scheduled' and queue and json_table(f[12])
      if wait and not is_lost then
        keep_for(prerequisite, is_late and id)
        if redis.call('SCARD', PENDING .. id) == 0 then
          wake_waiting(id, job.script_type, queue, jobs_event(id, wait, at), at)
        end
        return nil
      end
      -- Of a job that waits while it is scheduled, and names no type, only the sweep of its index knows the type.
      if not queue and (f[1] == 'waiting_for_prerequisites'
          or f[1] == 'scheduled' and job.script_type and json_table(f[12])) then
        redis.call('ZREM', index_of(f[1], job.script_type or 'unknown'), id)
        local own, calls_back = end_illegal(id, job.script_type, at, retention)
        if calls_back then some_are_left = true end
        return own.dependents
      end
      if f[1] ~= 'waiting_for_prerequisites' then return nil end
      if in_vain or is_lost then
        redis.call('DEL', PENDING .. id)
        redis.call('ZREM', index_of('waiting_for_prerequisites', job.script_type), id)
        local text = is_lost and PENDING .. id .. ' has the wrong type'
          or PREREQUISITE_FAILED .. prerequisite
        if end_job(id, job, 'error', text, nil, at, retention) then some_are_left = true end
        note_end(id, job.script_type, text)
        return present(f[9])
      end
      keep_for(prerequisite, is_late and id)
      if redis.call('SCARD', PENDING .. id) == 0 then
        redis.call('ZREM', index_of('waiting_for_prerequisites', job.script_type), id)
        redis.call('HSET', JOB .. id, 'updated_at', rfc3339(at))
        dispatch_or_schedule(id, queue, microseconds(f[6]), at)
      end
      return nil
    end

    -- Renames the list of dependents beyond the field: the next run has others. Nil if none.
    local function detached_list(ended, at)
      -- Only a full field has one.
      if #(ended.dependents or '') < DEPENDENTS_FIELD_BYTES then return nil end
      local list = ended.id .. ':' .. integer(at)
      local moved = redis.pcall('RENAME', DEPENDENTS .. ended.id, DEPENDENTS .. list)
      return not moved.err and list or nil
    end

    local budget = DEPENDENTS_PER_STEP
    local function is_over()
      if budget > 0 then return false end
      redis.call('LLEN', SETTLING)
      -- The supervisor would not find the others.
      if has_wrong_type[SETTLING] then budget = DEPENDENTS_PER_STEP end
      return budget <= 0
    end
    local turn = 1
    while ended[turn] do
      local own = ended[turn]
      local list = own.list
      if list == nil then list = detached_list(own, at) end
      -- Parsing the field of every job would take long as well.
      if not own.left and is_over() then
        leave({ id = own.id, status = own.status, dependents = own.dependents,
          list = list or false })
        own.left, list = {}, nil
      end
      local dependents = own.left or list_of_ids(own.dependents)
      local place, is_late = 1, own.left ~= nil
      while true do
        if place > #dependents and list then
          if is_over() then break end
          is_late = true
          dependents, place = redis.call('LPOP', DEPENDENTS .. list, budget) or {}, 1
          if #dependents == 0 then list = nil end
        end
        local id = dependents[place]
        if not id or is_over() then break end
        budget = budget - 1
        place = place + 1
        local theirs = tell(id, own.id, own.status, at, retention, is_late)
        if theirs then ended[#ended + 1] = { id = id, status = 'error', dependents = theirs } end
      end
      settle_later(own, dependents, place, list)
      turn = turn + 1
    end
    return some_are_left
  end
end
