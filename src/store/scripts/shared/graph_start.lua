-- Graphs and batches as objects: makes one, and adds jobs to it.
-- needs: wrong_type time windows

-- Stores a graph; the arguments from a place on are its fields and values. Returns false if there is
-- one with its id.
local function open_graph(graph, args, from, at)
  local graphs_max, unended_s = 10000, 7776000
  local key = GRAPH .. graph
  if redis.call('EXISTS', key, GRAPH_JOBS .. graph) > 0 then return false end
  redis.call('HSET', key, 'id', graph, 'created_at', rfc3339(at), unpack(args, from))
  redis.call('EXPIRE', key, unended_s)
  redis.call('ZADD', GRAPHS, integer(at), graph)
  redis.call('ZREMRANGEBYRANK', GRAPHS, 0, -graphs_max - 1)
  local window = redis.call('HMGET', key, 'at_a_time', 'stop_after', 'pause_after')
  if window[1] or window[2] or window[3] then keep_windows() end
  return true
end

-- Adds a job to a graph: at its place, or, where the number of jobs is not known before, at the end. A later graph with
-- the id has another opening.
local function join_graph(graph, id, place, opening)
  local unended_s = 7776000
  local key, jobs = GRAPH .. graph, GRAPH_JOBS .. graph
  if redis.call('EXISTS', key) == 0 then return end
  local own = redis.call('HMGET', key, 'opening', 'stopped')
  -- A graph of an older version has none.
  if own[1] and own[1] ~= opening then return end
  if own[2] then end_unstarted(graph) end
  if not place then
    place = redis.call('ZCARD', jobs)
    redis.call('HINCRBY', key, 'jobs', 1)
    redis.call('HDEL', key, 'ended_at')
    redis.call('EXPIRE', key, unended_s)
  end
  redis.call('ZADD', jobs, place, id)
  redis.call('EXPIRE', jobs, unended_s)
end
