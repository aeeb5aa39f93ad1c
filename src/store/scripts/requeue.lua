-- Gives jobs of a boot back to the front of their queues, or ends them if they were told to stop. No attempt is
-- charged, and a crash only of a job that was killed.
--
-- ARGV: 1 boot  2 retention  3 number of jobs, then for each: id, queue it came from or '', time of its claim in us,
--       '1' if its script has begun, '2' if it was killed too
-- returns how many were given back; the boot no longer owned the others, or they ended
-- needs: wrong_type time names routing job owner attempts counters events queue_front ending dependents limits

-- Tells if a boot has claimed the job again after the claim at that time.
local function has_claimed_again(boot, id, claimed_at)
  if has_wrong_type[RUNNING .. boot] then return false end
  local score = redis.call('ZSCORE', RUNNING .. boot, id)
  return score and tonumber(score) > tonumber(claimed_at)
end

local boot, retention, at = ARGV[1], ARGV[2], now_us()
local given_back, ended = 0, {}

local function end_stopped(id, f)
  local job = { script_type = legal_type(f[3]) or 'unknown', reply = f[9], unique_key = f[10], retention = f[12] }
  redis.call('HDEL', JOB .. id, 'exit_code')
  local hostname = hostname_of(boot)
  if hostname then redis.call('HSET', JOB .. id, 'hostname', hostname) end
  end_job(id, job, 'error', 'stopped_by_request', nil, at, retention)
  if present(f[11]) then ended[#ended + 1] = { id = id, status = 'error', dependents = f[11] } end
end

-- Last first, so that the first ends up in front.
for number = tonumber(ARGV[3]), 1, -1 do
  local a = 4 * number
  local id, queue, claimed_at, begun = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local f = read(id, 'status', 'attempt', 'script_type', 'group', 'instance', 'priority',
    'limits', 'crashes', 'reply', 'unique_key', 'dependents', 'retention', 'stop_requested', 'where')
  queue = present(queue) or queue_of(f[3], f[4], f[5], f[6], f[14])
  -- A job that names no queue stays with the boot, and is ended when its lease is over.
  if (queue or f[1] ~= 'started') and not has_claimed_again(boot, id, claimed_at)
    and disown(boot, id) then
    leave_limits(id, f[7], at)
    if f[1] == 'started' and present(f[13]) then
      end_stopped(id, f)
    elseif f[1] == 'started' then
      if begun ~= '0' then
        note_attempt(id, begun == '2' and 'crashed' or 'given_back', nil, rfc3339(at))
      end
      if begun == '2' then
        redis.call('HSET', JOB .. id, 'crashes', (tonumber(f[8]) or 0) + 1)
      end
      log_event(id, 'dispatched')
      redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at),
        'attempt', math.max((tonumber(f[2]) or 1) - 1, 0))
      redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress',
        'progress_text', 'unfinished_line')
      push_front(id, queue, at)
      given_back = given_back + 1
    end
  end
end
if #ended > 0 then tell_dependents(ended, at, retention) end
write_counts()
return given_back
