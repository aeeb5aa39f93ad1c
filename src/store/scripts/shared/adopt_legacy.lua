-- Adopts jobs that older programs pushed into a legacy queue. The copy there stays the right to run the job:
-- an old worker may still pop it, and a claim removes it.
-- needs: time names routing job owner index events legacy foreign_start prerequisites waiting queue pauses expiring type_times leftovers unindexed

-- Takes the list, window and at of the call, and its functions skip, push_again and count_adopted. Returns true
-- if there may be more. Older clients push to the head alone, so the oldest of their jobs stands at the end.
local function adopt_legacy(call)
  local list, at = call.list, call.at
  local old, when = legacy_queue(list), rfc3339(at)
  local own_type = old.type

  -- Makes a job of an older program wait for its prerequisites. Returns true if it has any that have not
  -- finished. Failed ones count too: the supervisor then fails the job.
  local function waits_for_prerequisites(id, prerequisites)
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

  local function queue_for(f)
    return queue_of(own_type, f.group, f.instance, f.priority) or 'type:' .. own_type
  end

  -- An old worker would run a job of a paused queue: its copy goes.
  local function stays_unless_paused(id, queue)
    if not is_queue_paused(queue) then return 'stays' end
    redis.call('HSET', JOB .. id, 'legacy', '')
    return 'gone'
  end

  -- Puts a job into its queue, with the target of its legacy queue.
  local function enqueue(id, f)
    f.group = f.group or old.group ~= 'default' and old.group or nil
    f.instance = f.instance or present(old.instance)
    local fields = { 'legacy', list, 'id', id, 'script_type', own_type, 'status', 'dispatched' }
    for _, name in ipairs({ 'group', 'instance' }) do
      fields[#fields + 1] = f[name] and name
      fields[#fields + 1] = f[name]
    end
    redis.call('HSET', JOB .. id, unpack(fields))
    redis.call('HDEL', JOB .. id, 'adopt_after')
    -- A program may have pushed the id to the queue too, and waits to be heard there: that entry stays the only one.
    local place = redis.pcall('LPOS', WORK .. queue_for(f), id, 'MAXLEN', SEARCHED_QUEUE_LEN)
    if type(place) ~= 'number' then add_to_queue(id, queue_for(f), at) end
    return stays_unless_paused(id, queue_for(f))
  end

  local function decide(id)
    if not legal_id(id) then return call.skip(id, own_type, 'no legal id') end
    local f, values = {}, read(id, 'status', 'group', 'instance', 'priority', 'legacy', 'prerequisites',
      'dependencies', 'boot_id')
    if #values == 0 then return call.skip(id, own_type, 'its key is no hash') end
    for number, name in ipairs({ 'status', 'group', 'instance', 'priority' }) do f[name] = present(values[number]) end
    if not f.status and redis.call('EXISTS', JOB .. id) == 0 then
      note_unindexed(list .. ' ' .. id, at)
      return call.skip(id, own_type, 'no such job')
    end
    local status, legacy = f.status or 'dispatched', values[5]
    if status == 'dispatched' and legacy == list then return stays_unless_paused(id, queue_for(f)) end
    if status == 'started' and not is_ours(id, values[8]) then note_foreign_start(id, own_type, at) end
    if status == 'finished' or status == 'error' then
      if call.push_again(id, status, own_type, nil) ~= 'ready' then return 'gone' end
      return enqueue(id, f)
    end
    -- One with the mark of another copy stands in its queue.
    if status ~= 'dispatched' or legacy then return call.skip(id, own_type, 'its status is ' .. status) end
    note_seen(list, 'pushed_at', at)
    call.count_adopted()
    -- A program may push the id to its queue as well, a moment later: that is no second run.
    local SECOND_PUSH_US = 60000000
    mark_leftover(id, at, SECOND_PUSH_US)
    local prerequisites = list_of_ids(present(values[6]))
    for _, prerequisite in ipairs(list_of_ids(present(values[7]))) do
      prerequisites[#prerequisites + 1] = prerequisite
    end
    redis.call('HSET', JOB .. id, 'legacy', list, 'script_type', own_type)
    redis.call('HSETNX', JOB .. id, 'created_at', when)
    give_type_time(id, 'expect_within', own_type)
    note_latest_times(id)
    if waits_for_prerequisites(id, prerequisites) then return 'gone' end
    return enqueue(id, f)
  end

  local ids = redis.call('LRANGE', list, -call.window, -1)
  local number_gone, seen = 0, {}
  for number = #ids, 1, -1 do
    local id = ids[number]
    if seen[id] or decide(id) == 'gone' then
      redis.call('LREM', list, seen[id] and 1 or -1, id)
      number_gone = number_gone + 1
    end
    seen[id] = true
  end
  return number_gone > 0 and #ids == call.window
end

-- In `dual` a program may push an id into a legacy queue as well, in a step of its own. If the copy is there,
-- it is the right to run the job. If not, an old worker may have popped it: the first look leaves the job
-- alone for a moment, so that the worker can say so. Returns true if that is the case.
local function may_be_with_old_worker(id, f, queue, at)
  local PATIENCE_US, SECOND_PUSH_US = 50000, 60000000
  local queues = f.legacy and {} or legacy_queues_of(queue)
  if #queues == 0 then return false end
  for _, legacy in ipairs(queues) do
    local found = redis.pcall('LPOS', legacy, id, 'MAXLEN', 10000)
    if type(found) == 'number' then
      redis.call('HSET', JOB .. id, 'legacy', legacy)
      redis.call('HDEL', JOB .. id, 'adopt_after')
      return false
    end
  end
  if not f.adopt_after then redis.call('HSET', JOB .. id, 'adopt_after', integer(at + PATIENCE_US)) end
  if at < (tonumber(f.adopt_after) or at + 1) then return true end
  redis.call('HDEL', JOB .. id, 'adopt_after')
  redis.call('HSET', JOB .. id, 'legacy', '')
  -- The copy may come yet.
  mark_leftover(id, at, SECOND_PUSH_US)
  return false
end
