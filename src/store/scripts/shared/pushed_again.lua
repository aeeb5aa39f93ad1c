-- Runs an ended job again whose id a program has pushed: the way of the older dispatcher to requeue it.
-- needs: wrong_type time names routing job attempts index events unique legacy prerequisites waiting awaited leftovers graph_end

-- In `dual`, a program may have pushed the id into two queues, and an old worker may have run the job: then
-- the other copy is left. For so long after an end that Hero did not record, the first id is that copy.
local SECOND_COPY_US = 3600000000

local function is_second_copy(id, f, script_type, at)
  if present(f.boot_id) or f.leftover or #legacy_queues_of('type:' .. script_type) == 0 then return false end
  local ended = math.max(microseconds(f.finished_at), microseconds(f.updated_at))
  if ended > 0 and at - ended > SECOND_COPY_US then return false end
  redis.call('HSET', JOB .. id, 'leftover', integer(at))
  return true
end

-- Returns the reason why an ended job does not run again; nil if it does, and is dispatched now.
-- `queue` is the queue of the list that held the id, nil for a legacy queue. A push within `repeat_us` of the end is the
-- repetition of one whose answer was lost.
local function run_again(id, hash, queue, own_type, at, repeat_us)
  local f = {}
  for i = 1, #hash, 2 do f[hash[i]] = hash[i + 1] end
  local status = canonical_status(f.status)
  local script_type = legal_type(f.script_type) or own_type
  local own = queue_of(script_type, f.group, f.instance, f.priority, f.where)
  -- A job with a ready entry was ended by a foreign program, and no sweep has noticed that.
  if is_leftover(f.leftover, at) or queue and queue ~= own
    or LEGACY and queue and is_second_copy(id, f, script_type, at) or own and redis.call('ZSCORE', READY .. own, id) then
    return 'its status is ' .. status
  end
  local since_us = at - math.max(microseconds(f.finished_at), microseconds(f.updated_at))
  if since_us >= 0 and since_us < repeat_us then
    return 'its status is ' .. status .. ' since a moment ago: a push that was repeated'
  end
  local key = present(f.unique_key) and unique_name(id, f.unique_key, f.unique_scope)
  if present(f.unique_key) and not key then return 'it was pushed again, and its unique_scope is not of its caller and context' end
  local holder = key and holder_of(key)
  if holder and holder ~= id then return 'it was pushed again, and job ' .. holder .. ' has its unique_key' end
  local pending, failed, _, _, _, over =
    look_at_own_prerequisites(present(f.prerequisites) or f.dependencies, f.after_any, f.prerequisites_at)
  if failed or #pending > 0 then
    return 'it was pushed again, and its prerequisite ' .. (failed or prerequisite_of(pending[1]))
      .. ' has not finished'
  end
  keep_all_for(id, over)
  if key then redis.call('SET', UNIQUE .. key, id) end
  redis.call('ZREM', index_of(status, script_type), id)
  leave_ends(status, script_type, id)
  redis.call('ZREM', index_of('started', script_type), id)
  log_event(id, 'dispatched', script_type)
  if present(f.graph_id) then note_in_graph(f.graph_id, id, 'dispatched', nil, at) end
  f.script_type = script_type
  -- The attempts count on.
  forget_end(id, status, f, 'leftover')
  if f.legacy then redis.call('HSET', JOB .. id, 'legacy', '') end
  redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
  return nil
end
