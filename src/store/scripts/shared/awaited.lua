-- Keeps ended jobs for as long as others may need their outputs and files: dependents that have not ended, and
-- callbacks of their graph.
-- needs: time names job prerequisites

local AWAITED_MS, expire_job, has_not_ended, keep_for, keep_all_for, is_awaited
do
  -- The time that an ended job stays beyond the next look at it, should no supervisor look.
  AWAITED_MS = 86400000

  -- Sets when an ended job goes, with its output and files.
  function expire_job(id, ms)
    redis.call('PEXPIRE', JOB .. id, integer(ms))
    -- An access list of an older version does not permit all keys.
    for _, key in ipairs({ OUTPUT .. id, FILES .. id, AWAITING .. id }) do redis.pcall('PEXPIRE', key, integer(ms)) end
  end

  function has_not_ended(id)
    local status = read(id, 'status')[1]
    return status and status ~= 'finished' and status ~= 'error'
  end

  -- Removes ended jobs from the head of the list of dependents that came late. Returns true if the next waits.
  local function late_dependent_waits(id, most)
    for _ = 1, most do
      local first = redis.pcall('LRANGE', AWAITING .. id, 0, 0)
      if first.err or not first[1] then return false end
      if has_not_ended(first[1]) then return true end
      redis.call('LPOP', AWAITING .. id)
    end
    return true
  end

  -- Keeps an ended job for a dependent, if it is not kept already: a supervisor looks when it would have expired.
  -- `dependent` is nil if the job's hash names it, and for the callbacks of its graph.
  function keep_for(id, dependent)
    local ttl_ms, at = redis.call('PTTL', JOB .. id), now_us()
    if ttl_ms < 0 then return end
    local look = redis.pcall('ZSCORE', AWAITED, id)
    if type(look) == 'table' then return end
    local ends = at + ttl_ms * 1000
    -- A job that ran again since has a new time.
    if not look or ends < tonumber(look) + AWAITED_MS * 500 then
      if type(redis.pcall('ZADD', AWAITED, integer(ends), id)) == 'table' then return end
      ttl_ms = ttl_ms + AWAITED_MS
      expire_job(id, ttl_ms)
    end
    if dependent then
      late_dependent_waits(id, 2)
      redis.pcall('RPUSH', AWAITING .. id, dependent)
      redis.pcall('PEXPIRE', AWAITING .. id, integer(ttl_ms))
    end
  end

  -- Keeps the ended prerequisites of a job. Those that are too many for one call are left to `settle`.
  function keep_all_for(id, prerequisites)
    local per_step = 500
    for first = 1, #prerequisites, per_step do
      local some = { unpack(prerequisites, first, math.min(first + per_step - 1, #prerequisites)) }
      local left = first > 1 and redis.pcall('RPUSH', SETTLING, cjson.encode({ id = id, keeps = some }))
      if type(left) ~= 'number' then
        for _, prerequisite in ipairs(some) do keep_for(prerequisite, id) end
      end
    end
  end

  -- Tells if a graph has not ended whose callbacks get the outputs of its jobs, or one of these has not.
  local function callback_waits(graph, at)
    local settling_us = 3600000000
    local f = redis.pcall('HMGET', GRAPH .. graph, 'callbacks', 'ended_at', 'on_success_job', 'on_failure_job', 'on_end_job')
    if f.err or not f[1] then return false end
    if not f[2] then return true end
    for place = 3, 5 do
      if f[place] and has_not_ended(f[place]) then return true end
    end
    return not (f[3] or f[4] or f[5]) and at - microseconds(f[2]) < settling_us
  end

  -- Tells if an ended job is needed: by a dependent, or by callbacks of its graph.
  function is_awaited(id, at)
    local f = read(id, 'dependents', 'graph_id')
    for _, dependent in ipairs(list_of_ids(f[1])) do
      if has_not_ended(dependent) then return true end
    end
    if legal_id(f[2]) and callback_waits(f[2], at) then return true end
    return late_dependent_waits(id, 1000)
  end
end
