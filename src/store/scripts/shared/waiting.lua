-- Makes jobs wait for others.
-- needs: wrong_type time names job prerequisites later_owner unindexed

local note_looked_at, look_at_prerequisites, look_at_own_prerequisites, note_failed_dependent, register_at
local add_dependent
do
  -- Reads the state of a prerequisite, the time of its creation as it is written, and in microseconds. A job of a
  -- program that wrote none, and that no actor has taken, is created now.
  local function state_of_prerequisite(prerequisite)
    local f = read(prerequisite, 'status', 'created_at')
    if f[1] and not present(f[2]) then
      f[2] = rfc3339(now_us())
      redis.call('HSET', JOB .. prerequisite, 'created_at', f[2])
    end
    return f[1], f[2], microseconds(f[2])
  end

  -- Notes up to when a prerequisite of a job was created: a later job of the same id is none. `newest` is the
  -- time of the newest, which is ahead where a program with another clock wrote it.
  function note_looked_at(id, newest, at)
    redis.call('HSET', JOB .. id, 'prerequisites_at', rfc3339(math.max(newest, at)))
  end

  -- Looks at entries of a pending set: jobs that `may_see` does not return true for are unknown. Returns the pending
  -- ones, the first that has failed, the first that is unknown, the time when the newest was created, and those that have ended.
  function look_at_prerequisites(entries, first, last, may_see)
    local pending, failed, unknown, newest, ended = {}, nil, nil, 0, {}
    for place = first, last do
      local prerequisite = prerequisite_of(entries[place])
      local status, _, created_us = state_of_prerequisite(prerequisite)
      newest = math.max(newest, created_us)
      if not status or not may_see(prerequisite) then
        unknown = unknown or prerequisite
      elseif status ~= 'finished' and status ~= 'error' then
        pending[#pending + 1] = entries[place]
      else
        if status == 'error' and prerequisite == entries[place] then failed = failed or prerequisite end
        ended[#ended + 1] = prerequisite
      end
    end
    return pending, failed, unknown, newest, ended
  end

  -- Looks at the prerequisites in the fields of a job, which were looked at before, at `looked_at`, if that is not
  -- nil. Returns the entries of its pending set, the first failed or missing one, how many it looked at, the
  -- time when the newest was created, true if the missing one has left its id to another job, and those
  -- that have ended.
  function look_at_own_prerequisites(prerequisites, after_any, looked_at)
    local pending, looked, newest, ended = {}, 0, 0, {}
    local function state_of(prerequisite)
      local status, created_at, created_us = state_of_prerequisite(prerequisite)
      looked = looked + 1
      newest = math.max(newest, created_us)
      return status, is_later_owner(created_at, looked_at)
    end
    for _, prerequisite in ipairs(list_of_ids(prerequisites)) do
      local status, is_another = state_of(prerequisite)
      if not status or status == 'error' or is_another then
        return pending, prerequisite, looked, newest, is_another, ended
      end
      local list = status == 'finished' and ended or pending
      list[#list + 1] = prerequisite
    end
    for _, prerequisite in ipairs(list_of_ids(after_any)) do
      local status, is_another = state_of(prerequisite)
      if status and not is_another then
        local has_ended = status == 'finished' or status == 'error'
        local list = has_ended and ended or pending
        list[#list + 1] = has_ended and prerequisite or ANY .. prerequisite
      end
    end
    return pending, nil, looked, newest, false, ended
  end

  -- Adds a job to the field `dependents` of its prerequisite.
  local function note_dependent(id, prerequisite)
    local key, entry = JOB .. prerequisite, '"' .. id .. '"'
    local known = redis.call('HGET', key, 'dependents')
    -- A retried job is there already.
    if known and string.find(known, entry, 1, true) then return end
    local list = '[' .. entry .. ']'
    if known and string.match(known, '^%[".*"%]$') then
      list = string.sub(known, 1, -2) .. ',' .. entry .. ']'
    end
    redis.call('HSET', key, 'dependents', list)
  end

  local function has_room_for_dependents(prerequisite)
    return redis.call('HSTRLEN', JOB .. prerequisite, 'dependents') < DEPENDENTS_FIELD_BYTES
  end

  -- Notes a job that fails at once, so that it is retried with its prerequisite, if that exists.
  function note_failed_dependent(id, prerequisite)
    if read(prerequisite, 'status')[1] and has_room_for_dependents(prerequisite) then
      note_dependent(id, prerequisite)
    end
  end

  -- Registers a job at a prerequisite, which then tells it of its end.
  function register_at(prerequisite, id)
    note_if_unindexed(prerequisite)
    if not has_room_for_dependents(prerequisite) then
      redis.call('RPUSH', DEPENDENTS .. prerequisite, id)
      if not has_wrong_type[DEPENDENTS .. prerequisite] then
        redis.pcall('HINCRBY', JOB .. prerequisite, 'dependents_more', 1)
        return
      end
    end
    note_dependent(id, prerequisite)
  end

  -- Makes a job wait for prerequisites, given as entries of its pending set.
  function add_dependent(id, pending)
    -- One call registers a job at so many prerequisites; `settle` does the others.
    local per_step = 500

    -- Leaves to `settle` the entries from a place on. Returns the last place that is not left to it.
    local function register_later(from)
      if from > #pending then return #pending end
      redis.call('LLEN', SETTLING)
      -- Nobody would find them there.
      if has_wrong_type[SETTLING] then return #pending end
      for first = from, #pending, per_step do
        local waits = { unpack(pending, first, math.min(first + per_step - 1, #pending)) }
        redis.call('RPUSH', SETTLING, cjson.encode({ id = id, waits = waits }))
      end
      return from - 1
    end

    -- Lua hands on no more than some thousand values at once.
    for first = 1, #pending, 1000 do
      redis.call('SADD', PENDING .. id, unpack(pending, first, math.min(first + 999, #pending)))
    end
    for place = 1, register_later(per_step + 1) do
      register_at(prerequisite_of(pending[place]), id)
    end
  end
end
