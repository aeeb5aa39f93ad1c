-- Adopts dispatched jobs that stand in no queue: a foreign program pushed them, and the actor that
-- popped them died. Notes the lists of older programs too. One step of a search through all keys,
-- which the next call continues.
--
-- Such a job gets a ready entry before the head of its queue. If it still has that after the grace of
-- a pop, the sweep for lost pops puts it back.
--
-- The search also finds actors of foreign programs, which only write their presence.
--
-- ARGV: 1 limit on keys  2 retention
-- returns { adopted, keys in Redis, 1 after the last step of a search }
-- needs: wrong_type time names routing job sweep counters index legacy adoption leftovers

-- A longer queue is not searched before it is shorter.
local SEARCHED_LEN = 10000
local at = now_us()
local adopt = adopting(at, ARGV[2])
local adopted = 0
despite_full_memory()

-- The ids in a queue, as a set; nil if it is too long.
local sets = {}
local function ids_in(queue)
  if sets[queue] == nil then
    sets[queue] = false
    local set, length = {}, 0
    for _, list in ipairs({ WORK .. queue, WORK .. queue .. ':prio:1' }) do
      length = length + redis.call('LLEN', list)
      if length > SEARCHED_LEN then return nil end
      for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do set[id] = true end
    end
    sets[queue] = set
  end
  return sets[queue] or nil
end

local function is_legacy(script_type)
  for _, queue in ipairs(LEGACY or {}) do
    if queue.type == script_type then return true end
  end
  return false
end

local function look_at(id)
  local known = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'held_by')
  -- A limit holds it, or an older program may have popped it from its legacy queue and run it now.
  if known[1] ~= 'dispatched' or present(known[6]) or is_legacy(known[2]) then return end
  local queue = queue_of(known[2], known[3], known[4], known[5])
  if not queue then return end
  if redis.call('ZSCORE', READY .. queue, id) or has_wrong_type[READY .. queue] then return end
  local f = read_for_adoption(id)
  register(TYPES, f.script_type)
  register(QUEUES, queue)
  local queued = ids_in(queue)
  -- One in its queue is adopted there.
  if not queued or queued[id] then return end
  adopted = adopted + 1
  if adopt(id, f, f.script_type) == 'dispatched' then
    local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', READY .. queue, integer(first and tonumber(first) - 1 or at), id)
  else
    -- Who popped it, or has yet to push it, may only have been slow.
    mark_leftover(id, at, LEFTOVER_US)
  end
end

local function look_at_presence(actor)
  local script_type, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
  if not queue_of(script_type, group, instance) then return end
  local ok, presence = pcall(cjson.decode, redis.pcall('GET', PRESENCE .. actor) or '')
  if not ok or type(presence) ~= 'table' or presence.boot_id then return end
  redis.call('ZADD', FOREIGN_ACTORS, integer(at), actor)
  register(TYPES, script_type)
end

-- Notes a list of older programs, up to a number of them.
local OLDER_MAX, DAY_US = 256, 86400 * 1000000
local function note_older(key)
  if redis.call('HGET', OLDER, key) or redis.call('HLEN', OLDER) < OLDER_MAX then
    redis.call('HSET', OLDER, key, integer(at))
  end
end

local function starts_with(key, prefix) return string.sub(key, 1, #prefix) == prefix end

local found = redis.call('SCAN', redis.call('HGET', MARKS, 'search') or '0', 'COUNT', ARGV[1])
for _, key in ipairs(found[2]) do
  if starts_with(key, JOB) then
    local kind = redis.call('TYPE', key).ok
    local id = legal_id(string.sub(key, #JOB + 1))
    if kind == 'hash' and id then look_at(id) end
    if kind == 'list' and is_legacy_queue(key) then note_older(key) end
  elseif starts_with(key, PRESENCE) then
    look_at_presence(string.sub(key, #PRESENCE + 1))
  elseif is_legacy_queue(key) or starts_with(key, TASKS) and #key <= 256 then
    note_older(key)
  end
end
-- Forgets those that were not found for a day.
if found[1] == '0' then
  local older = redis.call('HGETALL', OLDER)
  for place = 1, #older, 2 do
    if at - (tonumber(older[place + 1]) or 0) > DAY_US then redis.call('HDEL', OLDER, older[place]) end
  end
end
redis.call('ZREMRANGEBYSCORE', FOREIGN_ACTORS, '-inf', integer(at - DAY_US))
if found[1] == '0' then redis.call('HDEL', MARKS, 'search') else redis.call('HSET', MARKS, 'search', found[1]) end
write_counts()
return { adopted, redis.call('DBSIZE'), found[1] == '0' and 1 or 0 }
