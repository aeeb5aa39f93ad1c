-- Tends jobs that stand in legacy queues: notes starts and ends by old workers, puts back jobs that
-- an old worker popped and lost, tells jobs that wait for prerequisites of older programs, and
-- samples the legacy queues.
--
-- ARGV: 1 retention  2 limit on entries per queue  3 grace in ms for a popped copy
-- returns { started by old workers, ended by them, put back, 1 if there may be more }
-- needs: wrong_type time routing job owner sweep counters index legacy leftovers prerequisites dependents foreign_start foreign_end wake

if not LEGACY then return { 0, 0, 0, 0 } end
local retention, window, grace_us = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]) * 1000
local QUEUES_PER_STEP = 200
local LOOKED_FOR = 20
local at = now_us()
local started, ended, put_back, more = 0, 0, 0, 0
despite_full_memory()

-- Removes the void copies of a job. The legacy queue still holds one if a foreign actor has popped
-- the other; a long legacy queue keeps it, and the claim skips it there.
local function void(id, queue, list)
  redis.call('ZREM', READY .. queue, id)
  redis.pcall('LREM', WORK .. queue, 1, id)
  if legacy_queue(list) then
    local length = redis.pcall('LLEN', list)
    local is_short = type(length) == 'number' and length <= SEARCHED_QUEUE_LEN
    if not is_short then mark_leftover(id, at) end
    if is_short and redis.call('LREM', list, 1, id) == 1 then return end
    note_seen(list, 'popped_at', at)
  end
end

-- Puts back the copies of a job whose old worker has died: it popped the copy and did not start the
-- job within the grace. An actor of Hero may have removed the other copy meanwhile.
local function put_copies_back(id, queue, list)
  redis.pcall('LPUSH', list, id)
  mark_leftover(id, at, LEFTOVER_US)
  local length = redis.pcall('LLEN', WORK .. queue)
  if type(length) == 'number' and length <= SEARCHED_QUEUE_LEN
    and not redis.call('LPOS', WORK .. queue, id) then
    redis.call('LPUSH', WORK .. queue, id)
    wake(queue)
  end
end

local function look_for_copy(id, queue, list, missing_at)
  local length = redis.pcall('LLEN', list)
  if type(length) ~= 'number' or length > SEARCHED_QUEUE_LEN or redis.call('LPOS', list, id) then
    if missing_at then redis.call('HDEL', JOB .. id, 'legacy_missing_at') end
  elseif not missing_at then
    redis.call('HSET', JOB .. id, 'legacy_missing_at', integer(at))
  elseif at - (tonumber(missing_at) or 0) > grace_us then
    redis.call('HDEL', JOB .. id, 'legacy_missing_at')
    put_copies_back(id, queue, list)
    put_back = put_back + 1
  end
end

local function look_at(id, queue, may_look_for_copy)
  local f = read(id, 'status', 'boot_id', 'legacy', 'legacy_missing_at')
  if f[1] == 'started' and not is_ours(id, f[2]) then
    void(id, queue, f[3])
    note_foreign_start(id, type_of_queue(queue), at)
    started = started + 1
  elseif f[1] == 'finished' or f[1] == 'error' then
    void(id, queue, f[3])
    note_foreign_end(id, type_of_queue(queue), at, retention)
    ended = ended + 1
  elseif f[1] == 'dispatched' and may_look_for_copy and legacy_queue(f[3]) then
    look_for_copy(id, queue, f[3], f[4])
  end
end

for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, QUEUES_PER_STEP)) do
  if #legacy_queues_of(queue) > 0 then
    local before = started + ended
    -- The oldest, which old workers take first, and a window that moves through the others.
    local first = redis.call('ZRANGE', READY .. queue, 0, window - 1)
    for place, id in ipairs(first) do look_at(id, queue, place <= LOOKED_FOR) end
    local voided = started + ended - before
    if voided > 0 and #first == window then more = 1 end
    local mark = 'legacy ' .. queue
    local from = math.max(tonumber(redis.call('HGET', MARKS, mark) or '') or 0, window - voided)
    local others = redis.call('ZRANGE', READY .. queue, from, from + window - 1)
    for _, id in ipairs(others) do look_at(id, queue, false) end
    if #others == window then
      redis.call('HSET', MARKS, mark, from + window - (started + ended - before - voided))
    elseif from > window then
      redis.call('HDEL', MARKS, mark)
    end
  end
end

-- Dependents are not told of the end of a prerequisite that only older programs handled.
local function look_at_waiting(id)
  for _, entry in ipairs(redis.call('SMEMBERS', PENDING .. id)) do
    local prerequisite = prerequisite_of(entry)
    local status = read(prerequisite, 'status')[1]
    if not status or status == 'finished' or status == 'error' then
      local outcome = status == 'finished' and status or 'error'
      tell_dependents({ { id = prerequisite, status = outcome, left = { id } } }, at, retention)
    end
  end
end

local types = {}
for _, queue in ipairs(LEGACY) do
  if not types[queue.type] then
    types[queue.type] = true
    local index = index_of('waiting_for_prerequisites', queue.type)
    local mark = 'legacy waiting ' .. queue.type
    local from = tonumber(redis.call('HGET', MARKS, mark) or '') or 0
    local ids = redis.call('ZRANGE', index, from, from + LOOKED_FOR - 1)
    for _, id in ipairs(ids) do
      if redis.call('HEXISTS', JOB .. id, 'legacy_origin') == 1 then look_at_waiting(id) end
    end
    redis.call('HSET', MARKS, mark, #ids == LOOKED_FOR and from + LOOKED_FOR or 0)
  end
  local depth, key = redis.pcall('LLEN', queue.list), SEEN .. queue.list
  if type(depth) == 'number' then
    local head = redis.call('LINDEX', queue.list, 0)
    if head and #head <= 64 and redis.pcall('HEXISTS', JOB .. head, 'legacy') == 0 then
      note_seen(queue.list, 'pushed_at', at)
    end
    redis.call('HSETNX', key, 'since', integer(math.floor(at / 1000)))
    redis.call('HSET', key, 'depth', depth, 'sampled_at', integer(math.floor(at / 1000)))
    redis.call('EXPIRE', key, 30 * 86400)
  end
end
write_counts()
return { started, ended, put_back, more }
