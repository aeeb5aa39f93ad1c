-- Windows of graphs and batches: how many of their jobs run at once, and after how many failures no other starts.
-- Their hashes have:
--   at_a_time    how many of the jobs run at once
--   stop_after   how many failures stop the others: a number, or a share of all jobs, such as 5%
--   failures     jobs that failed since the submission, or since a job of the stopped graph was retried
--   stopped      the error of the jobs that have not started, once the graph is stopped: no claim starts any
--   stopping     how often their end was asked for, while an entry of SETTLING ends them
-- WINDOWS exists as long as a graph may have a window: without it, claims look at no graph.
-- needs: wrong_type time

local function keep_windows()
  local unended_s = 7776000
  redis.call('SET', WINDOWS, '1', 'EX', unended_s)
end

-- Returns the limit of the jobs of a graph that run at once.
local function limit_of_graph(graph) return '@graph=' .. graph end

-- Has `settle` end the jobs of a stopped graph that have not started.
local function end_unstarted(graph)
  if redis.call('HINCRBY', GRAPH .. graph, 'stopping', 1) == 1 then
    redis.call('RPUSH', SETTLING, cjson.encode({ stops = graph }))
  end
end

-- Stops a graph if as many of its jobs have failed as stop it. A share is one of all jobs, which are known once a batch has all of its
-- jobs. Returns true if it is stopped now.
local function stop_at_failures(graph)
  local f = redis.call('HMGET', GRAPH .. graph, 'stop_after', 'failures', 'jobs', 'open', 'stopped', 'kind')
  local number, percent = string.match(f[1] or '', '^(%d+)(%%?)$')
  local is_share = percent == '%'
  if not number or f[5] or is_share and f[4] then return false end
  local most, failures = tonumber(number), tonumber(f[2] or '') or 0
  if is_share then most = math.ceil(most * (tonumber(f[3] or '') or 0) / 100) end
  if failures < math.max(most, 1) then return false end
  redis.call('HSET', GRAPH .. graph, 'stopped', 'stopped after ' .. integer(failures)
    .. (failures == 1 and ' failure of ' or ' failures of ') .. (f[6] == 'batch' and 'batch ' or 'graph ') .. graph)
  end_unstarted(graph)
  return true
end

-- Returns the error that stops a job of a graph; nil if the graph is not stopped.
local function error_of_stopped(id, graph)
  local text = redis.call('HGET', GRAPH .. graph, 'stopped')
  return text and redis.call('ZSCORE', GRAPH_JOBS .. graph, id) and text or nil
end
