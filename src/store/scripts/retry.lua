-- Runs an ended job again on request: at the end of its queue, attempts and crashes reset.
--
-- ARGV: 1 id
-- returns 'dispatched', 'missing', 'illegal' if its fields name no queue, 'duplicate' if another
--         job holds its unique key, or 'refused' and its state
-- needs: time names routing job events unique queue leave

local id, at = ARGV[1], now_us()
local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'unique_key')
local status = f[1]
if not status then return { 'missing', '' } end
if status ~= 'finished' and status ~= 'error' then return { 'refused', status } end
local queue = queue_of(f[2], f[3], f[4], f[5])
if not queue then return { 'illegal', '' } end
if present(f[6]) then
  local holder = holder_of(f[6])
  if holder and holder ~= id then return { 'duplicate', holder } end
  redis.call('SET', UNIQUE .. f[6], id)
end
leave_index(id, status, f[2], { group = f[3], instance = f[4], priority = f[5] })
redis.call('LREM', DEAD .. f[2], 1, id)
redis.call('PERSIST', JOB .. id)
redis.call('DEL', REPLY .. id)
redis.call('HDEL', JOB .. id, 'attempt', 'crashes', 'error', 'output', 'exit_code', 'started_at',
  'finished_at', 'actor', 'boot_id', 'run_at', 'stop_requested', 'progress', 'progress_text',
  'limits', 'held_by')
log_event(id, 'dispatched')
redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
push_back(id, queue, at)
return { 'dispatched', '' }
