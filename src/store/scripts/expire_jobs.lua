-- Ends jobs that did not start within their time, as a stop does.
--
-- ARGV: 1 limit on jobs  2 retention
-- returns { jobs it looked at, jobs it ended, us until the next look or -1 }
-- needs: wrong_type time names job counters ending sweep expiring stop_job

local at = now_us()
local ended = 0
despite_full_memory()

local function look_at(id)
  redis.call('ZREM', EXPIRING, id)
  local f = read(id, 'status', 'attempt', 'crashes', 'first_started_at', 'attempts', 'started_at')
  local waits = f[1] == 'dispatched' or f[1] == 'scheduled' or f[1] == 'waiting_for_prerequisites'
  if not waits or (tonumber(f[2] or '') or 0) > 0 or f[3] or f[4] or f[5] or f[6] then return end
  local latest, length = latest_start(id)
  if not latest then return end
  if latest > at then
    -- Its time was changed.
    redis.call('ZADD', EXPIRING, integer(latest), id)
    return
  end
  local text = 'expired: it did not start within ' .. duration(length)
  -- A bare id is a control message: stop this job. An old worker may have it already.
  if stop_job({ id, ARGV[2], id, '', text }) == 'stopped' then
    ended = ended + 1
    count(legal_type(read(id, 'script_type')[1]) or 'unknown', 'failed_expired')
    note_end(id, read(id, 'script_type')[1], text)
  end
end

local due = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', integer(at), 'LIMIT', 0, ARGV[1])
for _, id in ipairs(due) do look_at(id) end
write_counts()
return { #due, ended, us_until_first(EXPIRING, at) }
