-- Sends scheduled jobs whose time has come to their queues, earliest first.
--
-- ARGV: 1 how many per type at the most
-- returns { how many went, us until the next is due or -1 }
-- needs: time names routing job sweep index events queue

local limit, at = tonumber(ARGV[1]), now_us()
local dispatched, soonest = 0, -1
for _, script_type in ipairs(some_types()) do
  local index = index_of('scheduled', script_type)
  local due = redis.call('ZRANGEBYSCORE', index, '-inf', integer(at), 'LIMIT', 0, limit)
  for _, id in ipairs(due) do
    redis.call('ZREM', index, id)
    local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority')
    local queue = queue_of(legal_type(f[2]) or script_type, f[3], f[4], f[5])
    -- Anything else is no scheduled job any more, and does not belong into this index.
    if f[1] == 'scheduled' and queue then
      log_event(id, 'dispatched')
      redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
      -- Whoever ran it before has no part in it any more: a foreign actor that takes it now leaves
      -- no boot, and its job must not look as if that of before were running it.
      redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress',
        'progress_text')
      push_back(id, queue, at)
      dispatched = dispatched + 1
    end
  end
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if first[2] then
    local wait = math.max(tonumber(first[2]) - at, 0)
    if soonest < 0 or wait < soonest then soonest = wait end
  end
end
return { dispatched, soonest }
