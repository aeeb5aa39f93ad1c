-- Dispatches, schedules or lets wait a job that was only created.
--
-- ARGV: 1 id  2 retention, should a prerequisite have failed  3 the rights of the caller
-- returns two strings: the new state; or 'missing' if there is none that the caller may change; or 'illegal' if its fields name no queue; or
--         'refused' and the state that forbids it
-- needs: wrong_type caller time names routing job counters index events ending prerequisites waiting awaited expiring dependents

local id, at, retention = ARGV[1], now_us(), ARGV[2]
local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'run_at',
  'prerequisites', 'reply', 'unique_key', 'dependents', 'after_any', 'retention',
  'prerequisites_at', 'where')
if not f[1] or not caller_may('change', id) then return { 'missing', '' } end
if f[1] ~= 'created' then return { 'refused', f[1] } end
local script_type = f[2]
local queue = queue_of(script_type, f[3], f[4], f[5], f[14])
if not queue then return { 'illegal', '' } end

local pending, failed, _, _, is_lost, over = look_at_own_prerequisites(f[7], f[11], f[13])
redis.call('ZREM', index_of('created', script_type), id)
redis.call('HSET', JOB .. id, 'updated_at', rfc3339(at))
local state
if not failed then
  keep_all_for(id, over)
  note_latest_times(id)
end
if failed then
  state = 'error'
  local job = { script_type = script_type, reply = f[8], unique_key = f[9], retention = f[12] }
  end_job(id, job, 'error', PREREQUISITE_FAILED .. failed, nil, at, retention)
  note_end(id, script_type, PREREQUISITE_FAILED .. failed)
  if not is_lost then note_failed_dependent(id, failed) end
  if present(f[10]) then
    tell_dependents({ { id = id, status = 'error', dependents = f[10] } }, at, retention)
  end
elseif #pending > 0 then
  state = 'waiting_for_prerequisites'
  log_event(id, state)
  redis.call('HSET', JOB .. id, 'status', state)
  enter(state, script_type, id, at)
  add_dependent(id, pending)
else
  state = dispatch_or_schedule(id, queue, microseconds(f[6]), at)
end
write_counts()
return { state, '' }
