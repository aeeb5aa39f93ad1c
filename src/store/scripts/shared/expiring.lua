-- Jobs that must start within a time: a sorted set has the end of that time.
-- needs: time names job

-- Returns the time when a job expires unless it has started; nil if it has none.
local function latest_start(id)
  local f = read(id, 'expires', 'created_at', 'run_at')
  local seconds = tonumber(string.match(f[1] or '', '^%d+%.?%d*$') or '')
  if not seconds then return nil end
  return math.max(microseconds(f[2]), microseconds(f[3])) + math.min(seconds, 315360000) * 1000000
end

-- Lets a supervisor look at a job at that time. An access list of an older version does not permit the key.
local function note_latest_start(id)
  local latest = latest_start(id)
  if latest then redis.pcall('ZADD', EXPIRING, integer(latest), id) end
end
