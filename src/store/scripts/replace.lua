-- Submits a job in place of the job that holds its unique key. The latter ends in `error`, if it waits. A job with
-- `debounce` is due after that time, or at the end of `debounce_max` since the first of the jobs that replaced each
-- other; it does not wait for a started job.
--
-- ARGV: as submit.lua, for one job that has a unique key
-- returns as submit.lua: 'duplicate' and an id if the holder does not wait, or the caller may not change it
-- needs: wrong_type caller time job unique submit_jobs stop_job

local id, key = ARGV[5], UNIQUE .. ARGV[12]
local fields = 14 + ARGV[13]
local holder = holder_of(ARGV[12])
local status = holder and read(holder, 'status')[1]
local waits = { created = true, scheduled = true, waiting_for_prerequisites = true, dispatched = true }
local is_replaced = waits[status or ''] and caller_may('change', holder) or false

local function seconds_of(name)
  for place = fields + 1, #ARGV, 2 do
    if ARGV[place] == name then return tonumber(ARGV[place + 1]) end
  end
  return nil
end

-- Sets the time when a debounced job is due.
local function debounce(wait_s)
  local at, most_s = now_us(), seconds_of('debounce_max')
  local f = is_replaced and read(holder, 'debounced_since', 'debounce') or {}
  local since = f[2] and not_ahead(microseconds(f[1]), at) or 0
  if since == 0 then since = at end
  local due = at + wait_s * 1000000
  if most_s then due = math.min(due, since + most_s * 1000000) end
  ARGV[11] = integer(math.floor(due))
  ARGV[fields] = tostring(ARGV[fields] + 4)
  for _, text in ipairs({ rfc3339(since), 'debounced_since', rfc3339(due), 'run_at' }) do
    table.insert(ARGV, fields + 1, text)
  end
end

-- Returns the error of the replaced job. It names the new one if all who may see the one may see the other: if they do not differ
-- in what a token can be bound to.
local function replaced_by(replaced)
  local names = { 'caller_id', 'context_id', 'script_type', 'group', 'instance', 'where' }
  local before, now = read(replaced, unpack(names)), read(id, unpack(names))
  for place = 1, #names do
    if (before[place] or '') ~= (now[place] or '') then return 'replaced by another job' end
  end
  return 'replaced by job ' .. id
end

local wait_s = seconds_of('debounce')
if wait_s then debounce(wait_s) end
local is_followed = wait_s and status == 'started' and caller_may('change', holder)
if not is_replaced and not is_followed then return submit_jobs(ARGV, RIGHTS) end

redis.call('DEL', key)
local result = submit_jobs(ARGV, RIGHTS)
local refusals = { exists = true, duplicate = true, unknown_prerequisite = true, broken_queue = true }
if refusals[result[1]] then
  redis.call('SET', key, holder)
  return result
end
-- A bare id is a control message: stop this job. An old worker may have it already.
if is_replaced then stop_job({ holder, ARGV[2], holder, '', replaced_by(holder) }) end
return result
