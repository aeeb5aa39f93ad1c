-- Notes that a batch has all its jobs: no other joins it. Until then it does not end. If all have ended, it ends now.
--
-- ARGV: 1 id
-- returns 1 if `settle` has its callbacks to start, or its other jobs to stop; else 0
-- needs: wrong_type time graph_end windows

local graph, step = ARGV[1], 1000000000
if redis.call('HEXISTS', GRAPH .. graph, 'opening') == 1 then redis.call('HSET', GRAPH .. graph, 'opening', '') end
if redis.call('HDEL', GRAPH .. graph, 'open') == 0 then return 0 end
local is_stopped = stop_at_failures(graph)
-- Any job that has ended may be the last.
local last = redis.call('ZRANGEBYSCORE', GRAPH_JOBS .. graph, step, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if last[1] then
  local outcome = math.floor(tonumber(last[2]) / step)
  local status, text = outcome == 1 and 'finished' or 'error', outcome == 3 and 'stopped' or ''
  if note_in_graph(graph, last[1], status, text, now_us(), 0) then return 1 end
end
return is_stopped and 1 or 0
