-- Claims jobs that stand in a legacy queue.
-- needs: time names routing job index events legacy leftovers prerequisites waiting

-- Returns the function `take_over` for a claim: its type, at and when; skip; and some_are_paused.
local function claim_from_legacy(claim)
  local own_type, at, when, skip = claim.type, claim.at, claim.when, claim.skip

  -- A legacy queue holds jobs of many queues, so it is never paused as a whole. A job of a paused
  -- queue loses its copy, or an old worker would run it.
  local function is_queue_paused(queue)
    return claim.some_are_paused and redis.call('SMISMEMBER', PAUSED, queue)[1] == 1
  end

  local function leave_to_paused_queue(id)
    redis.call('HSET', JOB .. id, 'legacy', '')
    skip(id, 'its queue is paused')
  end

  -- Another actor has popped the job from Hero's own queue and will claim it, so the copy goes. If
  -- that actor died, the sweep for lost pops puts the job back into both queues.
  local function leave_to_popping_actor(id)
    redis.call('HSET', JOB .. id, 'legacy', '')
    skip(id, 'it was popped from its own queue')
  end

  -- Makes a job of an older program wait for its prerequisites. Returns true if it has any that
  -- have not finished. Failed ones count too: the supervisor then fails the job.
  local function waits_for_prerequisites(id, fields, list)
    local prerequisites = list_of_ids(present(fields.prerequisites))
    for _, prerequisite in ipairs(list_of_ids(present(fields.dependencies))) do
      prerequisites[#prerequisites + 1] = prerequisite
    end
    local pending, failed = {}, {}
    for _, prerequisite in ipairs(prerequisites) do
      local status = read(prerequisite, 'status')[1]
      if not status or status == 'error' then
        failed[#failed + 1] = prerequisite
      elseif status ~= 'finished' then
        pending[#pending + 1] = prerequisite
      end
    end
    if #failed + #pending == 0 then return false end
    for _, prerequisite in ipairs(failed) do redis.call('SADD', PENDING .. id, prerequisite) end
    add_dependent(id, pending)
    log_event(id, 'waiting_for_prerequisites', own_type)
    redis.call('HSET', JOB .. id, 'status', 'waiting_for_prerequisites', 'updated_at', when,
      'legacy_origin', list)
    enter('waiting_for_prerequisites', own_type, id, at)
    return true
  end

  -- Takes over a job that Hero has submitted: voids its copy in Hero's own queue.
  local function take_over_own(id, queue)
    if is_queue_paused(queue) then return leave_to_paused_queue(id) end
    local length = redis.pcall('LLEN', WORK .. queue)
    local is_short = type(length) == 'number' and length <= SEARCHED_QUEUE_LEN
    if not is_short then mark_leftover(id, at) end
    if is_short and redis.call('LREM', WORK .. queue, 1, id) == 0
      and redis.call('ZSCORE', READY .. queue, id) then
      return leave_to_popping_actor(id)
    end
    redis.call('ZREM', READY .. queue, id)
    return WORK .. queue
  end

  -- Takes over a job from a legacy queue; one that an older program wrote becomes a job of Hero.
  -- Returns its work list, nil if it cannot start.
  local function take_over(id, hash, legacy, old)
    local fields = {}
    for i = 1, #hash, 2 do fields[hash[i]] = hash[i + 1] end
    local queue = queue_of(fields.script_type, fields.group, fields.instance, fields.priority)
    if legacy == old.list and queue then return take_over_own(id, queue) end
    note_seen(old.list, 'pushed_at', at)
    for i = 1, #hash, 2 do
      -- Older programs have their own spelling.
      if hash[i] == 'script_type' then hash[i + 1] = own_type end
      if hash[i] == 'status' then hash[i + 1] = 'dispatched' end
    end
    -- The job gets the target of its legacy queue.
    local group = present(fields.group) or old.group ~= 'default' and old.group or nil
    local instance = present(fields.instance) or present(old.instance)
    redis.call('HSET', JOB .. id, 'legacy', old.list, 'script_type', own_type)
    if group then redis.call('HSET', JOB .. id, 'group', group) end
    if instance then redis.call('HSET', JOB .. id, 'instance', instance) end
    if waits_for_prerequisites(id, fields, old.list) then return nil end
    queue = queue_of(own_type, group, instance, fields.priority) or 'type:' .. own_type
    if is_queue_paused(queue) then
      register(TYPES, own_type)
      register(QUEUES, queue)
      redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', when)
      redis.call('ZADD', READY .. queue, integer(at), id)
      redis.pcall('RPUSH', WORK .. queue, id)
      return leave_to_paused_queue(id)
    end
    return WORK .. queue
  end

  return take_over
end
