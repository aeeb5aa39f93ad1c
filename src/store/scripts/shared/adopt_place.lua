-- Gives jobs that programs pushed with plain commands their places.
-- needs: time names routing job owner counters index events unique ending prerequisites waiting awaited expiring queue type_times legacy

local end_adopted, place_adopted, place_by_where
do
  -- As in Rust, where an illegal key makes the job invalid.
  local function legal_key(key)
    return key and #key <= 256 and not string.find(key, '%c') and key
  end

  -- Tells if a job that waits for these would wait for itself.
  local function is_in_circle(id, pending)
    local ENTRIES_MAX = 2000
    local to_look_at, known, entries = { unpack(pending, 1, math.min(#pending, ENTRIES_MAX)) }, {}, 0
    while #to_look_at > 0 and entries < ENTRIES_MAX do
      local other = prerequisite_of(table.remove(to_look_at))
      if other == id then return true end
      if not known[other] then
        known[other] = true
        local entry_list = redis.pcall('SRANDMEMBER', PENDING .. other, ENTRIES_MAX)
        for _, entry in ipairs(entry_list) do
          entries = entries + 1
          to_look_at[#to_look_at + 1] = entry
        end
      end
    end
    return false
  end

  function end_adopted(id, f, text, at, retention)
    local job = { script_type = f.script_type, reply = f.reply, retention = f.retention }
    end_job(id, job, 'error', text, nil, at, retention)
    note_end(id, f.script_type, text)
    local dependents = list_of_ids(f.dependents)
    if #dependents > 0 then
      redis.call('RPUSH', SETTLING, cjson.encode({ id = id, status = 'error', left = dependents }))
    end
    return 'gone'
  end

  -- Gives a job the place that its fields ask for. Returns 'ready' if that is its queue, else 'gone', and true if it is adopted.
  function place_adopted(id, f, at, retention)
    local PREREQUISITES_MAX = 10000
    count(f.script_type, 'submitted')
    redis.call('HSETNX', JOB .. id, 'created_at', rfc3339(at))
    local key = legal_key(f.unique_key)
    if key then
      key = unique_name(id, key, f.unique_scope)
      if not key then return end_adopted(id, f, 'invalid job: unique_scope: is not of its caller and context', at, retention) end
    end
    local holder = key and holder_of(key)
    if holder and holder ~= id then
      return end_adopted(id, f, 'job ' .. holder .. ' has its unique_key and has not ended', at, retention)
    end
    if key then redis.call('SET', UNIQUE .. key, id) end
    local state, score
    local prerequisites = f.prerequisites or f.dependencies
    -- The actor rejects a job that waits for more.
    if #list_of_ids(prerequisites) + #list_of_ids(f.after_any) <= PREREQUISITES_MAX then
      local pending, failed, looked, newest, _, over = look_at_own_prerequisites(prerequisites, f.after_any)
      if looked > 0 then note_looked_at(id, newest, at) end
      local text = failed and PREREQUISITE_FAILED .. failed
      if failed then
        note_failed_dependent(id, failed)
      elseif #pending > 0 and is_in_circle(id, pending) then
        text = 'invalid job: prerequisites: the job would wait for itself'
      end
      if text then
        if key then redis.call('DEL', UNIQUE .. key) end
        return end_adopted(id, f, text, at, retention)
      end
      if #pending > 0 then
        state, score = 'waiting_for_prerequisites', at
        add_dependent(id, pending)
      end
      keep_all_for(id, over)
      give_type_time(id, 'expect_within', f.script_type)
      note_latest_times(id)
    end
    local run_at = microseconds(f.run_at)
    if not state and run_at > at then state, score = 'scheduled', run_at end
    if LEGACY and (state and withdraw_copies(id, f.script_type) ~= nil
        or #legacy_queues_of('type:' .. f.script_type) == 0) then
      redis.call('HSET', JOB .. id, 'legacy', '')
    end
    if not state then return 'ready', true end
    log_event(id, state, f.script_type)
    redis.call('HSET', JOB .. id, 'status', state, 'updated_at', rfc3339(at))
    enter(state, f.script_type, id, score)
    return 'gone', true
  end

  -- Returns the queue of a job with `where`, or of the queue of an expression; nil and the reason if there is none.
  local function queue_by_where(f, of, queue)
    if f.group or f.instance or of.group then
      return nil, 'cannot stand beside a group or an instance, which are labels'
    end
    local own = f.where and queue_of(of.script_type, nil, nil, of.priority, f.where)
    if of.digest and own ~= queue then
      return nil, 'is not the expression of its queue, whose name ends with the SHA-1 of the text'
    end
    return own
  end

  -- Gives a job the place that its `where` asks for, also from the list of its type. Returns what `place_adopted` does.
  function place_by_where(id, f, of, queue, at, retention)
    local own, why_not = queue_by_where(f, of, queue)
    f.script_type = of.script_type
    redis.call('HSET', JOB .. id, 'script_type', of.script_type, 'priority', of.priority or '1')
    if not own then
      count(of.script_type, 'submitted')
      return end_adopted(id, f, 'invalid job: where ' .. why_not, at, retention)
    end
    local outcome, is_adopted = place_adopted(id, f, at, retention)
    if own == queue or outcome ~= 'ready' then return outcome, is_adopted end
    push_back(id, own, at)
    return 'gone', is_adopted
  end
end
