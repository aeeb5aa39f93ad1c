-- Changes the priority, the group, the earliest time or settings of a job that has not started, and moves it to
-- the queue or the index where it then belongs.
--
-- ARGV: 1 id  2 priority or ''  3 group, '' to leave it, or '-' for any group  4 earliest time in us, or ''
--       5... settings to correct, as field, text, …  last: the rights of the caller
-- returns two strings: 'edited' and the new state; 'missing' if there is none that the caller may change; 'illegal' if its fields name no queue; 'refused'
--         and the state that forbids it; 'taken' if an actor is about to start it; 'long' and the queue that
--         is too long to take it out of the middle
-- needs: wrong_type caller time names routing job attempts index events queue legacy leave

local id, priority, group, due = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local at = now_us()
-- So many jobs at either end of a queue are searched: more would take too long.
local SEARCHED_AT_ENDS = 10000
local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'legacy', 'run_at', 'where')
local status = f[1]
if not status or not caller_may('change', id) then return { 'missing', '' } end
if status == 'started' or status == 'finished' or status == 'error' then return { 'refused', status } end

local new_group, new_instance, new_priority = f[3], f[4], f[5]
if priority ~= '' then new_priority = priority end
-- Another group has other instances.
if group ~= '' then new_group, new_instance = group ~= '-' and group or nil, nil end
local script_type = legal_type(f[2])
local old_queue = queue_of(script_type, f[3], f[4], f[5], f[8])
local queue = queue_of(script_type, new_group, new_instance, new_priority, f[8])
if not queue or not old_queue then return { 'illegal', '' } end
local is_later = due and due > at

-- Takes a dispatched job out of its queue. Returns the reason if it is not there.
local function take_out()
  if LEGACY and present(f[6]) and not remove_copy(id, f[6]) then return 'taken' end
  if stop_holding(id, old_queue) then return end
  local list = WORK .. old_queue
  local length = redis.pcall('LLEN', list)
  if type(length) ~= 'number' then return 'taken' end
  -- The back first: a change of many begins with the latest.
  local from = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', SEARCHED_AT_ENDS) and -1
    or redis.call('LPOS', list, id, 'MAXLEN', SEARCHED_AT_ENDS) and 1
  if not from then return length > 2 * SEARCHED_AT_ENDS and 'long' or 'taken' end
  redis.call('LREM', list, from, id)
  redis.call('ZREM', READY .. old_queue, id)
end

local moves = status == 'dispatched' and (is_later or queue ~= old_queue)
if is_later and (moves or status == 'scheduled') then
  redis.call('ZCARD', index_of('scheduled', script_type))
  if has_wrong_type[index_of('scheduled', script_type)] then return { 'illegal', '' } end
end
if moves then
  local why_not = take_out()
  if why_not then return { why_not, old_queue } end
end

correct(id, ARGV, 5)
if ARGV[5] then narrow_bounds(id) end
local fields = { 'updated_at', rfc3339(at) }
local function set(name, value)
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end
if priority ~= '' then set('priority', priority) end
if due then
  set('run_at', rfc3339(due))
  -- The time is no backoff and no delay any more.
  redis.call('HDEL', JOB .. id, 'started_at', 'delayed_since', 'debounced_since')
end
if group ~= '' then
  redis.call('HDEL', JOB .. id, 'instance', 'group')
  if new_group then set('group', new_group) end
end

if moves then
  local state = is_later and 'scheduled' or 'dispatched'
  log_event(id, state)
  set('status', state)
  redis.call('HSET', JOB .. id, unpack(fields))
  if is_later then
    enter(state, script_type, id, due)
  else
    push_back(id, queue, at)
  end
  return { 'edited', state }
end
redis.call('HSET', JOB .. id, unpack(fields))
-- A job that is due at once is dispatched by the next sweep.
if status == 'scheduled' and due then enter(status, script_type, id, math.max(due, at)) end
return { 'edited', status }
