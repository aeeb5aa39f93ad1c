-- Submits jobs. Takes the arguments of submit.lua, and the rights of the caller, which a duty of the daemon leaves out.
-- Returns what that script returns.
-- needs: wrong_type time names routing job counters index events reserved legacy wake type_times
-- rarely: where rights unique ending prerequisites waiting awaited expiring graph_start

local function submit_jobs(args, rights)
  local starting = args[1] == 'start'
  local at = now_us()
  local when = rfc3339(at)
  local results = {}
  local graph = args[4] ~= '' and args[4]
  local next_arg = 5

  -- A job waits for jobs that the caller may see, and for jobs of the same call.
  local stored = {}
  local function may_see(id)
    return not rights or stored[id] or rarely().allows(rights, 'see', id)
  end

  local function has_field(first, last, name)
    for place = first, last, 2 do
      if args[place] == name then return true end
    end
    return false
  end

  -- Jobs of one queue are pushed together.
  local pushes = {}
  local function pushes_to(queue, script_type)
    local push = pushes[queue]
    if not push then
      local kind = redis.call('TYPE', WORK .. queue).ok
      push = { ids = {}, entries = {}, script_type = script_type, is_where = is_where_queue(queue) }
      if kind ~= 'list' and kind ~= 'none' then push.broken = WORK .. queue end
      -- Its expression could not be registered; or an access list of an older version does not permit the key.
      if push.is_where and type(redis.pcall('HLEN', WHERE .. script_type)) ~= 'number' then
        push.broken = WHERE .. script_type
      end
      pushes[queue] = push
    end
    return push
  end

  for number = 1, tonumber(args[3]) do
    local a = next_arg
    local id, script_type, run_at, unique_key = args[a], args[a + 1], args[a + 6], args[a + 7]
    local fields = a + 9 + args[a + 8]
    local first, last = fields + 1, fields + args[fields]
    next_arg = last + 1

    local code, detail = nil, ''
    local pending, failed, unknown, newest, ended = {}, nil, nil, nil, nil
    if is_taken(id) then
      code = 'exists'
    elseif unique_key ~= '' then
      local holder = rarely().holder_of(unique_key)
      if holder then code, detail = 'duplicate', rarely().visible_id(rights, holder) end
    end
    if not code and fields > a + 9 then
      pending, failed, unknown, newest, ended = rarely().look_at_prerequisites(args, a + 9, fields - 1, may_see)
      if unknown then code, detail = 'unknown_prerequisite', unknown end
    end

    local is_accepted = not code
    local queue = queue_of(script_type, args[a + 2], args[a + 3], args[a + 4], args[a + 5])
    local due = tonumber(run_at) or 0
    if is_accepted then
      if not starting then
        code = 'created'
      elseif failed then
        code = 'error'
      elseif #pending > 0 then
        code = 'waiting_for_prerequisites'
      elseif due > at then
        code = 'scheduled'
        local index = index_of(code, script_type)
        redis.call('ZCARD', index)
        if has_wrong_type[index] then code, detail, is_accepted = 'broken_queue', index, false end
      elseif pushes_to(queue, script_type).broken then
        code, detail, is_accepted = 'broken_queue', pushes[queue].broken, false
      else
        code = 'dispatched'
      end
    end
    if is_accepted then
      args[last - 2], args[last] = code, when
      -- `end_job` logs a job that fails at once.
      if code ~= 'error' then log_event(id, code, script_type) end
      redis.call('HSET', JOB .. id, unpack(args, first, last))
      -- Staged files stay now: for 400 days, or until the end of the job sets another time.
      if args[last - 5] == 'input_files' then redis.pcall('EXPIRE', FILES .. id, 34560000) end
      local late = code ~= 'error' and type_time('expect_within', script_type)
      if late then give_type_time(id, 'expect_within', script_type) end
      if code ~= 'error' and (late or has_field(first, last, 'expires') or has_field(first, last, 'expect_within')) then
        rarely().note_latest_times(id)
      end
      if newest then rarely().note_looked_at(id, newest, at) end
      if ended and code ~= 'error' then rarely().keep_all_for(id, ended) end
      stored[id] = true
      count(script_type, 'submitted')
      if graph then rarely().join_graph(graph, id, nil, rights and rarely().rights_of(rights).opening) end
      if unique_key ~= '' then redis.call('SET', UNIQUE .. unique_key, id) end
      if code == 'dispatched' then
        local push = pushes[queue]
        push.ids[#push.ids + 1] = id
        push.entries[#push.entries + 1] = integer(at + number - 1)
        push.entries[#push.entries + 1] = id
      elseif code == 'scheduled' then
        enter(code, script_type, id, due)
      elseif code == 'error' then
        local f = read(id, 'reply', 'retention')
        local job =
          { script_type = script_type, reply = f[1], unique_key = unique_key, retention = f[2] }
        rarely().end_job(id, job, 'error', rarely().PREREQUISITE_FAILED .. failed, nil, at, args[2])
        rarely().note_end(id, script_type, rarely().PREREQUISITE_FAILED .. failed)
        rarely().note_failed_dependent(id, failed)
      else
        enter(code, script_type, id, at + number - 1)
        if code == 'waiting_for_prerequisites' then rarely().add_dependent(id, pending) end
      end
    end
    results[#results + 1] = code
    results[#results + 1] = detail
  end

  for queue, push in pairs(pushes) do
    if not push.broken then
      register(TYPES, push.script_type)
      register(QUEUES, queue)
      redis.call('ZADD', READY .. queue, unpack(push.entries))
      redis.call('RPUSH', WORK .. queue, unpack(push.ids))
      if push.is_where then rarely().note_where(queue, push.ids[1], at) end
      wake(queue)
      if LEGACY then
        for _, id in ipairs(push.ids) do copy_to_legacy(id, queue) end
      end
    end
  end
  write_counts()
  return results
end
