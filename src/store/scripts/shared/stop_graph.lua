-- Ends the jobs of a stopped graph that have not started, or all of them, in steps.
-- needs: wrong_type time job windows stop_job

-- Takes the step of an entry of SETTLING. The last jobs come first, so that none fails with its prerequisite.
local function stop_some(entry, retention)
  local most, step = 100, 1000000000
  local graph, key = entry.stops, GRAPH .. entry.stops
  local text, all = unpack(redis.call('HMGET', key, 'stopped', 'stops_started'))
  if not entry.before and text then redis.call('HSET', key, 'stopping', 1) end
  local number = text and redis.call('ZCOUNT', GRAPH_JOBS .. graph, 0, '(' .. integer(entry.before or step)) or 0
  local jobs = number > 0
    and redis.call('ZRANGE', GRAPH_JOBS .. graph, math.max(number - most, 0), number - 1, 'WITHSCORES') or {}
  for place = #jobs - 1, 1, -2 do
    local f = read(jobs[place], 'status', 'graph_id')
    local is_stopped = f[1] and (all or f[1] ~= 'started') and f[2] == graph
    if is_stopped then stop_job({ jobs[place], retention, jobs[place], '', text }) end
  end
  if number > most then
    redis.call('RPUSH', SETTLING, cjson.encode({ stops = graph, before = tonumber(jobs[2]) }))
    return
  end
  local asked = tonumber(redis.call('HGET', key, 'stopping') or '') or 0
  redis.call('HDEL', key, 'stopping')
  -- Jobs that came after it had passed their places.
  if text and asked > 1 then end_unstarted(graph) end
end
