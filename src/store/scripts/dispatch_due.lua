-- Dispatches scheduled jobs that are due, earliest first. Ends those whose fields name no queue.
--
-- ARGV: 1 limit  2 retention of jobs that it ends
-- returns { dispatched, us until the next is due or -1, notes on jobs }
-- needs: wrong_type time names routing job sweep notes index events queue waits
-- rarely: illegal dependents counters

local limit, retention, at = tonumber(ARGV[1]), ARGV[2], now_us()
local dispatched, soonest, ended = 0, -1, {}
for _, script_type in ipairs(some_types(at)) do
  local index = index_of('scheduled', script_type)
  local due = redis.call('ZRANGEBYSCORE', index, '-inf', integer(at), 'LIMIT', 0, limit)
  limit = limit - #due
  for _, id in ipairs(due) do
    redis.call('ZREM', index, id)
    local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'wait', 'run_at', 'where')
    local queue = queue_of(legal_type(f[2]) or script_type, f[3], f[4], f[5], f[8])
    local event, look
    if f[6] then event, look = event_of_due(id, f[6], microseconds(f[7]), at) end
    -- A job in another state does not belong into this index.
    if f[1] == 'scheduled' and not queue then
      redis.call('ZREM', index_of('waits', script_type), id)
      ended[#ended + 1] = rarely().end_illegal(id, script_type, at, retention)
    elseif f[1] == 'scheduled' and look then
      redis.call('ZADD', index, integer(look), id)
    elseif f[1] == 'scheduled' then
      if event then end_wait(id, script_type, event, at) end
      log_event(id, 'dispatched')
      redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
      -- A foreign actor leaves no boot id: with the boot id of the last attempt, the job would look as if
      -- that boot ran it.
      redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress',
        'progress_text', 'unfinished_line')
      push_back(id, queue, at)
      dispatched = dispatched + 1
      note(id, script_type, 'is due: dispatched to queue ' .. queue)
    else
      redis.call('ZREM', index_of('waits', script_type), id)
    end
  end
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if first[2] then
    local wait = math.max(tonumber(first[2]) - at, 0)
    if soonest < 0 or wait < soonest then soonest = wait end
  end
end
if #ended > 0 then
  rarely().tell_dependents(ended, at, retention)
  rarely().write_counts()
end
return { dispatched, soonest, notes }
