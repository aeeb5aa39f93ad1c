-- Puts back jobs that foreign actors popped and never started, and notes jobs that they popped and
-- started. Constant time per queue.
--
-- A ready entry before the head of the list is in no list: it was popped, unless a program pushed a later
-- job in front of it. Every sweep leaves a mark, the head's score and the time. An entry that stood before
-- the head at a mark older than the grace, and is not among the first of the list, is lost.
--
-- ARGV: 1 grace in ms  2 limit on entries to find the head  3 limit on queues  4 retention
-- returns { put back, started by foreign actors, ended by foreign actors, gone, notes on jobs }
-- needs: wrong_type time routing job owner sweep notes counters legacy leftovers foreign_start foreign_end wake

local grace_us, depth, retention = tonumber(ARGV[1]) * 1000, tonumber(ARGV[2]), ARGV[4]
-- Entries that are settled, of all queues together.
local left = 250
local at = now_us()
local put_back, started, ended, gone = 0, 0, 0, 0
despite_full_memory()

-- The score of the first entry that has one, and the first entries; foreign producers push ids without. Now
-- for an empty list, nil if unknown.
local function head_of(queue)
  local ids = redis.pcall('LRANGE', WORK .. queue, 0, depth - 1)
  if ids.err then return nil end
  for _, id in ipairs(ids) do
    local score = redis.call('ZSCORE', READY .. queue, id)
    if score then return tonumber(score), ids end
  end
  return #ids < depth and at or nil, ids
end

local function settle(id, queue)
  local f = read(id, 'status', 'boot_id', 'legacy')
  if f[1] == 'dispatched' then
    redis.call('LPUSH', WORK .. queue, id)
    wake(queue)
    -- The actor may only have been slow.
    mark_leftover(id, at, LEFTOVER_US)
    -- The copy in its legacy queue may have been popped as well.
    if f[3] then
      remove_copy(id, f[3])
      if LEGACY then copy_to_legacy(id, queue, true) else redis.call('HDEL', JOB .. id, 'legacy') end
    end
    count(type_of_queue(queue), 'recovered')
    put_back = put_back + 1
    note(id, type_of_queue(queue), 'goes back to the front of queue ' .. queue
      .. ': an actor popped it and never started it')
    return
  end
  redis.call('ZREM', READY .. queue, id)
  if f[1] == 'started' and not is_ours(id, f[2]) then
    note_foreign_start(id, type_of_queue(queue), at)
    started = started + 1
  elseif f[1] == 'finished' or f[1] == 'error' then
    note_foreign_end(id, type_of_queue(queue), at, retention)
    ended = ended + 1
  else
    gone = gone + 1
  end
end

for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, ARGV[3])) do
  local head, ids
  if left > 0 then head, ids = head_of(queue) end
  if head then
    local mark = redis.call('HGET', MARKS, queue)
    local since, before = string.match(mark or '', '^(%d+) (%d+)$')
    -- A mark must not last longer because the clock was set back.
    if since and not_ahead(since, at) ~= tonumber(since) then since = nil end
    if since and at - tonumber(since) >= grace_us then
      local limit = math.min(tonumber(before), head)
      local lost = redis.call('ZREVRANGEBYSCORE', READY .. queue, '(' .. integer(limit), '-inf',
        'LIMIT', 0, left)
      left = left - #lost
      local stands = {}
      for _, id in ipairs(ids) do stands[id] = true end
      for _, id in ipairs(lost) do
        if not stands[id] then settle(id, queue) end
      end
      since = nil
    end
    if not since then
      redis.call('HSET', MARKS, queue, integer(at) .. ' ' .. integer(head))
    end
  end
end
write_counts()
return { put_back, started, ended, gone, notes }
