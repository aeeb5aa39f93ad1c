-- Adopts jobs that programs wrote and pushed with plain commands: no script has looked at them yet.
-- needs: wrong_type time names job counters index events unique legacy ending prerequisites waiting

-- Reads the fields of a job that decide about its adoption, by name; an empty one counts as absent.
local read_for_adoption
do
  local READ_FIELDS = { 'status', 'script_type', 'group', 'instance', 'priority', 'held_by', 'legacy',
    'prerequisites', 'dependencies', 'after_any', 'run_at', 'unique_key', 'retention', 'reply',
    'dependents' }

  function read_for_adoption(id)
    local values, fields = read(id, unpack(READ_FIELDS)), {}
    for place, name in ipairs(READ_FIELDS) do fields[name] = present(values[place]) end
    return fields
  end
end

-- Returns the function `adopt`.
local function adopting(at, retention)
  local PREREQUISITES_MAX = 10000
  -- As in Rust, where an illegal key makes the job invalid.
  local function legal_key(key)
    return present(key) and #key <= 256 and not string.find(key, '%c') and key
  end

  local function end_adopted(id, f, script_type, text)
    local job = { script_type = script_type, reply = f.reply, retention = f.retention }
    end_job(id, job, 'error', text, nil, at, retention)
    note_end(id, script_type, text)
    local dependents = list_of_ids(present(f.dependents))
    if #dependents > 0 then
      local entry = { id = id, status = 'error', left = dependents }
      redis.call('RPUSH', SETTLING, cjson.encode(entry))
    end
    return 'error'
  end

  -- Gives a job the place that its fields, a table by name, ask for. Returns its state: 'dispatched'
  -- if it may stay in its queue; from there the caller takes it in any other.
  return function(id, f, script_type)
    count(script_type, 'submitted')
    redis.call('HSETNX', JOB .. id, 'created_at', rfc3339(at))
    local key = legal_key(f.unique_key)
    local holder = key and holder_of(key)
    if holder and holder ~= id then
      return end_adopted(id, f, script_type, 'job ' .. holder .. ' has its unique_key and has not ended')
    end
    if key then redis.call('SET', UNIQUE .. key, id) end
    f.unique_key = key
    local prerequisites = present(f.prerequisites) or present(f.dependencies)
    local state, score
    -- The actor rejects a job that waits for more.
    if #list_of_ids(prerequisites) + #list_of_ids(present(f.after_any)) <= PREREQUISITES_MAX then
      local pending, failed = look_at_own_prerequisites(prerequisites, present(f.after_any))
      if failed then
        note_failed_dependent(id, failed)
        if key then redis.call('DEL', UNIQUE .. key) end
        return end_adopted(id, f, script_type, PREREQUISITE_FAILED .. failed)
      end
      if #pending > 0 then
        state, score = 'waiting_for_prerequisites', at
        add_dependent(id, pending)
      end
    end
    local run_at = microseconds(f.run_at)
    if not state and run_at > at then state, score = 'scheduled', run_at end
    -- In its queue it may have a copy in a legacy queue, which a claim withdraws.
    if LEGACY and (state and withdraw_copies(id, script_type) ~= nil
        or #legacy_queues_of('type:' .. script_type) == 0) then
      redis.call('HSET', JOB .. id, 'legacy', '')
    end
    if not state then return 'dispatched' end
    log_event(id, state, script_type)
    redis.call('HSET', JOB .. id, 'status', state, 'updated_at', rfc3339(at), 'script_type', script_type)
    enter(state, script_type, id, score)
    return state
  end
end
