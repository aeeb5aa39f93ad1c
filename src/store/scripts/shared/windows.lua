-- Windows of graphs and batches: how many of their jobs run at once, after how many failures no other starts, and after
-- how many jobs the others pause.
-- Their hashes have:
--   at_a_time    how many of the jobs run at once
--   stop_after   how many failures stop the others: a number, or a share of all jobs, such as 5%; with those that run: `2 running`
--   failures     jobs that failed since the submission, or since a job of the stopped graph was retried
--   stopped      the error of the jobs that have not started, once the graph is stopped: no claim starts any
--   pause_after  how many of the jobs start before the others, and the length of the pause: such as `1 10m`, or `1 tell`
--   pause_ms     the length in ms; without it the pause ends by `edit_graph` alone
--   first        the jobs that started before the others, separated by spaces
--   goes_on_us   from when on the others start; absent until the first ones have ended well, or it is told to go on
--   stops_started  set if the jobs that run are stopped as well
--   stopping     how often their end was asked for, while an entry of SETTLING ends them
-- WINDOWS exists as long as a graph may have a window: without it, claims look at no graph.
-- needs: wrong_type time

local function keep_windows()
  local unended_s = 7776000
  redis.call('SET', WINDOWS, '1', 'EX', unended_s)
end

-- Returns the limit of the jobs of a graph that run at once.
local function limit_of_graph(graph) return '@graph=' .. graph end

-- Returns the limit of the jobs of a graph that start after the first ones.
local function limit_of_pause(graph) return '@paused=' .. graph end

-- Begins the pause of a graph whose first jobs have all ended well, and ends it after its length.
local function begin_pause(graph, at)
  local f = redis.call('HMGET', GRAPH .. graph, 'pause_after', 'pause_ms', 'first', 'goes_on_us')
  if not (f[1] and f[2] and f[3]) or f[4] then return end
  local left = tonumber(string.match(f[1], '^%d+')) or 0
  for id in string.gmatch(f[3], '%S+') do
    local score = tonumber(redis.call('ZSCORE', GRAPH_JOBS .. graph, id) or '') or 0
    if math.floor(score / 1000000000) == 1 then left = left - 1 end
  end
  if left <= 0 then redis.call('HSET', GRAPH .. graph, 'goes_on_us', integer(at + tonumber(f[2]) * 1000)) end
end

-- Has `settle` end the jobs of a stopped graph that have not started, and with `stops_started` the others.
local function end_unstarted(graph)
  if redis.call('HINCRBY', GRAPH .. graph, 'stopping', 1) == 1 then
    redis.call('RPUSH', SETTLING, cjson.encode({ stops = graph }))
  end
end

-- Stops a graph with all its jobs.
local function stop_whole(graph)
  redis.call('HSET', GRAPH .. graph, 'stopped', 'stopped', 'stops_started', 1)
  keep_windows()
  end_unstarted(graph)
end

-- Stops a graph if as many of its jobs have failed as stop it. A share is one of all jobs, which are known once a batch has all of its
-- jobs. Returns true if it is stopped now.
local function stop_at_failures(graph)
  local f = redis.call('HMGET', GRAPH .. graph, 'stop_after', 'failures', 'jobs', 'open', 'stopped', 'kind')
  local number, percent, running = string.match(f[1] or '', '^(%d+)(%%?)( ?%a*)$')
  local is_share = percent == '%'
  if not number or f[5] or is_share and f[4] then return false end
  local most, failures = tonumber(number), tonumber(f[2] or '') or 0
  if is_share then most = math.ceil(most * (tonumber(f[3] or '') or 0) / 100) end
  if failures < math.max(most, 1) then return false end
  redis.call('HSET', GRAPH .. graph, 'stopped', 'stopped after ' .. integer(failures)
    .. (failures == 1 and ' failure of ' or ' failures of ') .. (f[6] == 'batch' and 'batch ' or 'graph ') .. graph)
  if running == ' running' then redis.call('HSET', GRAPH .. graph, 'stops_started', 1) end
  end_unstarted(graph)
  return true
end

-- Returns the error that stops a job of a graph; nil if the graph is not stopped.
local function error_of_stopped(id, graph)
  local text = redis.call('HGET', GRAPH .. graph, 'stopped')
  return text and redis.call('ZSCORE', GRAPH_JOBS .. graph, id) and text or nil
end

-- Returns the error of a job that ran when failures stopped its graph with those that run; nil if they did not.
local function error_of_started(id, graph)
  local text = redis.call('HEXISTS', GRAPH .. graph, 'stops_started') == 1 and error_of_stopped(id, graph)
  return text and text ~= 'stopped' and text or nil
end
