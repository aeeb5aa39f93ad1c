-- Times of jobs: sorted sets have the time by which a job must have started, and those by which it, or its attempt, is
-- expected to have ended.
-- needs: time names job

local length_of, duration, latest_start, latest_end, note_latest_times, note_slow_time
do
  -- Returns a field that is a length of time, in us; nil if it is none.
  function length_of(text)
    local seconds = tonumber(string.match(text or '', '^%d+%.?%d*$') or '')
    return seconds and math.min(seconds, 315360000) * 1000000
  end

  -- Writes a length of time in its largest exact unit, as people write it.
  function duration(us)
    for _, unit in ipairs({ { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } }) do
      if us % (unit[2] * 1000000) == 0 then return integer(us / unit[2] / 1000000) .. unit[1] end
    end
    return integer(us / 1000) .. 'ms'
  end

  -- Returns the time of a job that is so long after its submission or `run_at`, and this length; nil if it has none.
  local function time_after(id, field)
    local f = read(id, field, 'created_at', 'run_at')
    local length = length_of(f[1])
    if not length then return nil end
    return math.max(microseconds(f[2]), microseconds(f[3])) + length, length
  end

  -- Returns the time when a job expires unless it has started, and the length of its time; nil if it has none.
  function latest_start(id) return time_after(id, 'expires') end

  -- Returns the time when a job is late unless it has ended, and the length of its time; nil if it has none.
  function latest_end(id) return time_after(id, 'expect_within') end

  -- Lets a supervisor look at a job at these times. An access list of an older version does not permit the keys.
  function note_latest_times(id)
    local start, finish = latest_start(id), latest_end(id)
    if start then redis.pcall('ZADD', EXPIRING, integer(start), id) end
    if finish then redis.pcall('ZADD', EXPECTED, integer(finish), 'late ' .. id) end
  end

  -- Lets a supervisor look at an attempt that begins, once it runs for longer than its `slow_after`.
  function note_slow_time(id, slow_after, at)
    local length = length_of(slow_after)
    if length then redis.pcall('ZADD', EXPECTED, integer(at + length), 'slow ' .. id) end
  end
end
