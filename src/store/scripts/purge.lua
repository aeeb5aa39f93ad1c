-- Ends jobs that wait in a queue, as a stop does: one step. Jobs submitted meanwhile are left to the
-- caller's count.
--
-- ARGV: 1 queue  2 limit on entries  3 retention
-- returns { jobs ended, entries removed, entries left }
-- needs: wrong_type time names routing job owner counters leave ending dependents foreign_start

local queue, most, retention = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local at = now_us()
local purged, taken_out, left, ended = 0, 0, 0, {}

local function purge(id)
  if not legal_id(id) then return end
  local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'boot_id', 'reply',
    'unique_key', 'dependents', 'retention', 'where')
  local script_type = legal_type(f[2])
  stop_holding(id, queue)
  -- The supervisor notices the end that a foreign actor wrote by the ready entry alone.
  if f[1] ~= 'finished' and f[1] ~= 'error' then redis.call('ZREM', READY .. queue, id) end
  if f[1] == 'started' and not is_ours(id, f[6]) then
    return note_foreign_start(id, script_type or type_of_queue(queue), at)
  end
  if f[1] ~= 'dispatched' then return end
  -- A foreign program may have pushed it into a queue that its fields do not name.
  local own = queue_of(f[2], f[3], f[4], f[5], f[11])
  if own and own ~= queue then pull_out(id, own) end
  local job = { script_type = script_type or 'unknown', reply = f[7], unique_key = f[8],
    retention = f[10] }
  end_job(id, job, 'error', 'stopped', nil, at, retention)
  if present(f[9]) then ended[#ended + 1] = { id = id, status = 'error', dependents = f[9] } end
  purged = purged + 1
end

local lists = { WORK .. queue }
if not string.find(queue, ':prio:', 1, true) then lists[2] = lists[1] .. ':prio:1' end
for _, list in ipairs(lists) do
  local length = redis.pcall('LLEN', list)
  if type(length) == 'number' and length > 0 then
    local ids = {}
    if taken_out < most then
      ids = redis.call('LRANGE', list, 0, most - taken_out - 1)
      redis.call('LTRIM', list, #ids, -1)
    end
    taken_out = taken_out + #ids
    left = left + length - #ids
    for _, id in ipairs(ids) do purge(id) end
  end
end
-- Held jobs wait in the queue as well.
local held = redis.call('ZCARD', HELD .. queue)
if held > 0 and taken_out < most then
  local ids = redis.call('ZRANGE', HELD .. queue, 0, most - taken_out - 1)
  for _, id in ipairs(ids) do purge(id) end
  taken_out, held = taken_out + #ids, redis.call('ZCARD', HELD .. queue)
end
left = left + held
if #ended > 0 then tell_dependents(ended, at, retention) end
write_counts()
return { purged, taken_out, left }
