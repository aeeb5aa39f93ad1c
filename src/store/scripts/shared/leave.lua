-- Takes jobs out of queues and indexes.
-- needs: time names routing index legacy leftovers

-- Releases a job that a limit holds. Returns true if one did.
local function stop_holding(id, queue)
  if redis.call('ZREM', HELD .. queue, id) == 0 then return false end
  local limit = legal_limit(redis.call('HGET', JOB .. id, 'held_by'))
  if limit then redis.call('ZREM', LIMIT_HELD .. limit, queue .. ' ' .. id) end
  redis.call('HDEL', JOB .. id, 'held_by')
  return true
end

-- Takes a dispatched job out of its queue and the ready index, or releases it from its limit.
local function pull_out(id, queue)
  if redis.call('ZREM', READY .. queue, id) == 0 and stop_holding(id, queue) then return end
  local length = redis.pcall('LLEN', WORK .. queue)
  if type(length) == 'number' and length <= SEARCHED_QUEUE_LEN then
    -- A foreign actor that has popped it may put it back.
    if redis.call('LREM', WORK .. queue, 1, id) == 0 then mark_leftover(id, now_us(), LEFTOVER_US) end
  else
    mark_leftover(id, 0)
  end
  if LEGACY then remove_copy(id, redis.call('HGET', JOB .. id, 'legacy')) end
end

-- Removes a job from the index of its state.
local function leave_index(id, status, script_type, fields)
  if status == 'dispatched' then
    local queue = queue_of(script_type, fields.group, fields.instance, fields.priority, fields.where)
    if queue then pull_out(id, queue) end
  elseif status == 'started' then
    if present(fields.boot_id) then redis.call('ZREM', RUNNING .. fields.boot_id, id) end
  elseif legal_type(script_type) then
    redis.call('ZREM', index_of(status, script_type), id)
    if status == 'scheduled' then redis.call('ZREM', index_of('waits', script_type), id) end
    if status == 'finished' or status == 'error' then
      leave_ends(status, script_type, id)
      -- A job that a foreign actor ended stays in its index until a sweep has noticed.
      redis.call('ZREM', index_of('started', script_type), id)
      local queue = queue_of(script_type, fields.group, fields.instance, fields.priority, fields.where)
      if queue then redis.call('ZREM', READY .. queue, id) end
    end
  end
end
