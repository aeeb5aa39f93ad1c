-- Moves jobs that may fall back from group and instance queues without live actors to the next wider queue.
--
-- ARGV: 1 how long a job waits before, in us  2 limit on queues  3 limit on entries per queue
--       4... script types and how far their jobs may go unless they say: 'group' or 'type'
-- returns { moved, notes on jobs }
-- needs: wrong_type time names routing job sweep notes index events legacy queue foreign_actors pauses

local after_us, window, at = tonumber(ARGV[1]), tonumber(ARGV[3]), now_us()
-- A job that has waited for long stands near the head.
local SEARCHED_LEN = 1000
local moved = 0
-- Entries of all queues together.
local left = 1000
local of_type = {}
for place = 4, #ARGV, 2 do of_type[ARGV[place]] = ARGV[place + 1] end
despite_full_memory()

local function is_live(actor)
  return type(redis.pcall('GET', PRESENCE .. actor)) == 'string'
end

-- The types and groups with a live actor, looked up once: there may be thousands of actors, and queues.
local with_actor

-- Tells if an actor of a type and group is live.
local function has_live_actor(script_type, group, instance)
  if instance then return is_live(script_type .. ':' .. group .. ':' .. instance) end
  if not with_actor then
    with_actor = {}
    for _, index in ipairs({ ACTORS, FOREIGN_ACTORS }) do
      for _, actor in ipairs(redis.call('ZRANGE', index, 0, -1)) do
        local of = string.match(actor, '^([^:]+:[^:]+):')
        if of and not with_actor[of] and is_live(actor) then with_actor[of] = true end
      end
    end
  end
  return with_actor[script_type .. ':' .. group]
end

-- How far a job may go: nil for nowhere.
local function farthest(fallback, script_type)
  local word = present(fallback) and string.lower(fallback) or of_type[script_type]
  if word == 'group' then return word end
  return (word == 'type' or word == '1' or word == 'true' or word == 'yes') and 'type' or nil
end

local function move(id, queue, group, instance)
  local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'fallback', 'where')
  if f[1] ~= 'dispatched' or queue_of(f[2], f[3], f[4], f[5], f[7]) ~= queue then return end
  local far = farthest(f[6], f[2])
  if not far or far == 'group' and not instance then return end
  local wider = queue_of(f[2], instance and group or nil, nil, f[5])
  -- An actor may just have popped it.
  if not redis.call('LPOS', WORK .. queue, id, 'MAXLEN', SEARCHED_LEN) then return end
  redis.call('LREM', WORK .. queue, 1, id)
  redis.call('ZREM', READY .. queue, id)
  if LEGACY then remove_copy(id, redis.call('HGET', JOB .. id, 'legacy')) end
  log_event(id, 'dispatched')
  redis.call('HDEL', JOB .. id, 'instance')
  if instance then
    redis.call('HSET', JOB .. id, 'group', group)
  else
    redis.call('HDEL', JOB .. id, 'group')
  end
  redis.call('HSETNX', JOB .. id, 'fell_back_from', queue)
  redis.call('HSET', JOB .. id, 'updated_at', rfc3339(at))
  push_back(id, wider, at)
  moved = moved + 1
  note(id, f[2], 'falls back to queue ' .. wider .. ': no live actor serves queue ' .. queue)
end

for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, ARGV[2])) do
  local of = parts_of_queue(queue)
  local group, instance = of.group, of.instance
  local first = group and redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
  local is_due = left > 0 and first and first[2] and tonumber(first[2]) <= at - after_us
  if is_due and not is_queue_paused(queue)
    and not (LEGACY and #legacy_queues_of(queue) > 0)
    and not has_live_actor(type_of_queue(queue), group, instance) then
    -- A window that moves past jobs that may not fall back.
    local mark = 'fallback ' .. queue
    local from = tonumber(redis.call('HGET', MARKS, mark) or '') or 0
    local before = moved
    -- By rank: Redis finds a rank at once, but walks to the offset of a LIMIT.
    local number = math.min(window, left)
    local entries = redis.call('ZRANGE', READY .. queue, from, from + number - 1, 'WITHSCORES')
    left = left - #entries / 2
    local due = 0
    while due < #entries / 2 and tonumber(entries[2 * due + 2]) <= at - after_us do
      due = due + 1
      move(entries[2 * due - 1], queue, group, instance)
    end
    if due == number then
      redis.call('HSET', MARKS, mark, from + number - (moved - before))
    elseif from > 0 then
      redis.call('HDEL', MARKS, mark)
    end
  end
end
return { moved, notes }
