-- Finds jobs that stand in no index: foreign actors that waited popped their ids before Hero knew of them. Looks at
-- those that are noted, and goes on with a walk through the hashes of all jobs, which supervisors share.
--
-- ARGV: 1 grace of a popped job in ms  2 keys of the walk, 0 for none  3 pause between its steps in ms
--       4 pause between two walks in ms  5 retention
-- returns { put back, started by foreign actors, ended by foreign actors, ms until the next step of the walk,
--           at the end of a walk how many jobs it found that name no legal type, if the last one found another number,
--           else 0, one of them or '', notes on jobs }
-- needs: wrong_type time names routing sweep notes counters legacy leftovers foreign_start foreign_end index unindexed

local SEARCHED_ENTRIES = 10000
local grace_us, keys, retention = tonumber(ARGV[1]) * 1000, tonumber(ARGV[2]), ARGV[5]
local step_us, walk_us = tonumber(ARGV[3]) * 1000, tonumber(ARGV[4]) * 1000
local at = now_us()
local put_back, started, ended, next_us, untyped, one = 0, 0, 0, walk_us, 0, ''
despite_full_memory()

-- Tells if the id stands in a list, from where Hero adopts it or another program takes it; also if a list is too long
-- to tell.
local function is_in_list(id, queue)
  local lists = { WORK .. queue, WORK .. queue .. ':prio:1' }
  for _, list in ipairs(redis.call('HKEYS', OLDER)) do lists[#lists + 1] = list end
  for _, legacy in ipairs(LEGACY and legacy_queues_of(queue) or {}) do lists[#lists + 1] = legacy end
  for _, list in ipairs(lists) do
    local place = redis.pcall('LPOS', list, id, 'MAXLEN', SEARCHED_ENTRIES)
    if type(place) == 'number' then return true end
    local length = redis.pcall('LLEN', list)
    if type(length) == 'number' and length > SEARCHED_ENTRIES then return true end
  end
  return false
end

-- Pushes the id as its program did: from there it is adopted.
local function push_as_before(id, queue)
  register(QUEUES, queue)
  redis.call('LPUSH', WORK .. queue, id)
  -- The actor, or the program that pushes the job, may only have been slow.
  mark_leftover(id, at, LEFTOVER_US)
  count(type_of_queue(queue), 'recovered')
  put_back = put_back + 1
  note(id, type_of_queue(queue), 'goes back to the front of queue ' .. queue
    .. ': a foreign actor popped it and never started it')
end

-- Puts a job of an unknown start or end where it belongs. False if it is neither.
local function settle(id, f)
  local script_type = type_of_job(f[2], f[7])
  if f[1] == 'started' then
    note_foreign_start(id, script_type, at)
    started = started + 1
  elseif f[1] ~= 'dispatched' then
    note_foreign_end(id, script_type, at, retention)
    ended = ended + 1
  end
  return f[1] ~= 'dispatched'
end

-- Pushes an id again whose hash came after its first push, unless its program did. True if there is nothing more to wait
-- for.
local function push_late(list, id, since)
  local HASH_WITHIN_US = 60000000
  if redis.call('EXISTS', JOB .. id) == 0 then return at - since >= HASH_WITHIN_US end
  local f = read_place(id)
  local is_work = string.sub(list, 1, #WORK) == WORK
  if (f[1] or 'dispatched') ~= 'dispatched' or is_indexed(id, f) or not is_work and not is_legacy_queue(list) then return true end
  if type(redis.pcall('LPOS', list, id, 'MAXLEN', SEARCHED_ENTRIES)) == 'number' then return true end
  redis.call(is_work and 'RPUSH' or 'LPUSH', list, id)
  if is_work then register(QUEUES, queue_of_list(list)) end
  put_back = put_back + 1
  note(id, is_work and type_of_queue(queue_of_list(list)) or 'unknown', 'goes to ' .. list
    .. ': its id was pushed before its hash was written; write the hash first')
  return true
end

-- A popped job is left to its actor for a while.
local noted = redis.call('ZRANDMEMBER', UNINDEXED, 100, 'WITHSCORES')
for place = 1, #noted, 2 do
  local entry, since = noted[place], tonumber(noted[place + 1])
  local list, id = string.match(entry, '^(%S+) (%S+)$')
  id = id or entry
  local f = list and {} or read_place(id)
  if since > at then
    -- The clock was set back.
    redis.call('ZADD', UNINDEXED, integer(at), entry)
  elseif list then
    if push_late(list, id, since) then redis.call('ZREM', UNINDEXED, entry) end
  elseif is_indexed(id, f) ~= false or settle(id, f) then
    redis.call('ZREM', UNINDEXED, id)
  elseif at - since >= grace_us then
    redis.call('ZREM', UNINDEXED, id)
    local queue = queue_of(f[2], f[3], f[4], f[5], f[8])
    if queue and not is_in_list(id, queue) then
      push_as_before(id, queue)
    elseif queue and is_where_queue(queue) then
      -- No actor looks for entries there before.
      register(QUEUES, queue)
    end
  end
end

-- A job without a legal type may be of another system with the same names of keys.
local function look_at(id)
  local f = read_place(id)
  if is_indexed(id, f) ~= false then return end
  if legal_type(f[2]) then
    if not settle(id, f) then note_unindexed(id, at) end
  elseif f[1] == 'dispatched' or f[1] == 'started' then
    untyped, one = untyped + 1, id
  end
end

local function walk()
  -- When the last step was, where it ended, and what the walk has found so far.
  local mark = redis.call('HGET', MARKS, 'walk') or ''
  local last, cursor, found, found_one = string.match(mark, '^(%d+) (%d+) (%d+) (%S*)$')
  local pause_us = cursor == '0' and walk_us or step_us
  -- A mark must not last longer because the clock was set back.
  local since_us = last and at - tonumber(last) or pause_us
  if since_us >= 0 and since_us < pause_us then
    next_us = pause_us - since_us
    return
  end
  if cursor ~= '0' and found then untyped, one = tonumber(found), found_one end
  local some = redis.call('SCAN', cursor or '0', 'MATCH', JOB .. '*', 'COUNT', keys)
  for _, key in ipairs(some[2]) do
    local id = legal_id(string.sub(key, #JOB + 1))
    if id then look_at(id) end
  end
  redis.call('HSET', MARKS, 'walk', integer(at) .. ' ' .. some[1] .. ' ' .. integer(untyped) .. ' ' .. one)
  next_us = some[1] == '0' and walk_us or step_us
  local known = some[1] == '0' and tonumber(redis.call('HGET', MARKS, 'walk untyped') or '') or 0
  if some[1] == '0' then redis.call('HSET', MARKS, 'walk untyped', integer(untyped)) end
  if some[1] ~= '0' or untyped == known then untyped, one = 0, '' end
end
if keys > 0 then walk() end
write_counts()
return { put_back, started, ended, math.ceil(next_us / 1000), untyped, one, notes }
