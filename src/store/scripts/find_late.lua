-- Finds jobs that have not ended within their `expect_within`, and attempts that run for longer than their
-- `slow_after`: notes it in the job, and tells notifications. Each job is late once, each attempt slow once.
--
-- ARGV: 1 limit on entries
-- returns { entries it looked at, us until the next look or -1, ids of late jobs, ids of slow jobs }
-- needs: wrong_type time names job wanted sweep expiring notify

local at = now_us()
local found = { late = {}, slow = {} }
despite_full_memory()

-- Returns the time by which it was expected to have ended, the length of this time and what to say; nil if it has ended.
local SOUGHT = {
  late = function(id)
    local status = read(id, 'status')[1]
    if not status or status == 'finished' or status == 'error' then return nil end
    local latest, length = latest_end(id)
    return latest, length, 'it has not ended within '
  end,
  slow = function(id)
    local f = read(id, 'status', 'slow_after', 'started_at')
    local length = length_of(f[2])
    if f[1] ~= 'started' or not length or not f[3] then return nil end
    return microseconds(f[3]) + length, length, 'its attempt runs for longer than '
  end,
}

local function tell(kind, id, text)
  local wanted = wanted_kinds(at)
  if not wanted then return end
  local f = told_fields(id)
  if wanted[kind] or present(f[1]) and wanted[kind .. ' named'] then
    add_event(id, read(id, 'script_type')[1], kind, nil, f, text)
  end
end

local function look_at(entry)
  redis.call('ZREM', EXPECTED, entry)
  local kind, id = string.match(entry, '^(%l+) (.+)$')
  if not SOUGHT[kind] then return end
  local latest, length, text = SOUGHT[kind](id)
  if not latest then return end
  if latest > at then
    -- Its time was changed.
    redis.call('ZADD', EXPECTED, integer(latest), entry)
    return
  end
  redis.call('HSET', JOB .. id, kind .. '_at', rfc3339(at))
  table.insert(found[kind], id)
  tell(kind, id, text .. duration(length))
end

local due = redis.call('ZRANGEBYSCORE', EXPECTED, '-inf', integer(at), 'LIMIT', 0, ARGV[1])
for _, entry in ipairs(due) do look_at(entry) end
return { #due, us_until_first(EXPECTED, at), found.late, found.slow }
