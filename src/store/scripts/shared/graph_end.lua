-- Graphs and batches as objects: what became of their jobs. All jobs of one stand in a sorted set. The
-- score of a job is its outcome times 10^9, plus its place: outcome 0 has not ended, 1 finished or failed
-- and may fail, 2 failed, 3 cancelled or replaced. So the counts are lengths of ranges, and cannot drift from the jobs.
-- needs: wrong_type time names awaited notify windows cron_end

-- Tells if the failure of a job counts for nothing.
local function may_fail(id)
  local flag = present(redis.call('HGET', JOB .. id, 'may_fail'))
  return flag and not says_no(flag)
end

-- Notes the state of a job in its graph; `kept_ms` is how long the job is kept if it has ended. Ends
-- the graph with its last job, unless it is a batch that gets more jobs, and opens it again with a job that runs again. Returns true if `settle`
-- has its callbacks to start, or its other jobs to stop.
local function note_in_graph(graph, id, status, text, at, kept_ms)
  local step, unended_ms, reply_ttl_s = 1000000000, 7776000000, '60'
  local jobs, key = GRAPH_JOBS .. graph, GRAPH .. graph
  local score = tonumber(legal_id(graph) and redis.call('ZSCORE', jobs, id) or nil)
  if not score then return end
  local outcome = status == 'finished' and 1 or status ~= 'error' and 0
    or intended_end(text) and 3 or may_fail(id) and 1 or 2
  redis.call('ZADD', jobs, integer(outcome * step + score % step), id)
  local info = redis.call('HMGET', key, 'jobs', 'kept_ms', 'ended_at', 'callbacks', 'open', 'notify', 'created_at',
    'at_a_time', 'stop_after', 'stopped', 'stopping', 'pause_after', 'cron')
  local ttl_ms, calls_back = unended_ms, false
  if info[8] or info[9] or info[12] then keep_windows() end
  if outcome == 0 then
    if info[3] then redis.call('HDEL', key, 'ended_at') end
    if info[10] and not info[11] then redis.call('HDEL', key, 'stopped', 'stops_started', 'failures') end
  else
    local kept = math.max(tonumber(info[2] or 0) or 0, kept_ms)
    redis.call('HSET', key, 'kept_ms', integer(kept))
    if info[9] and outcome == 2 and math.floor(score / step) ~= 2 then
      redis.call('HINCRBY', key, 'failures', 1)
      calls_back = stop_at_failures(graph)
    end
    if info[12] and outcome == 1 then begin_pause(graph, at) end
    -- The callbacks get its output.
    if info[4] then keep_for(id) end
    if not info[5] and redis.call('ZCOUNT', jobs, 0, step - 1) == 0
      and redis.call('ZCARD', jobs) == tonumber(info[1] or 0) then
      ttl_ms = kept + (info[4] and AWAITED_MS or 0)
      if not info[3] then
        redis.call('HSET', key, 'ended_at', rfc3339(at))
        redis.pcall('RPUSH', REPLY .. graph, '{}')
        redis.pcall('EXPIRE', REPLY .. graph, reply_ttl_s)
        if info[4] or info[6] or info[13] then
          local function number(of) return redis.call('ZCOUNT', jobs, of * step, of * step + step - 1) end
          local finished, failed, cancelled = number(1), number(2), number(3)
          if info[13] and (failed > 0 or cancelled == 0) then
            note_cron_end(info[13], graph, failed > 0 and 'error' or 'finished',
              integer(failed) .. ' of ' .. integer(finished + failed + cancelled) .. ' jobs failed', at, info[7])
          end
          if info[6] then tell_graph_end(graph, info[6], finished, failed, cancelled, at) end
          if info[4] then
            redis.call('RPUSH', SETTLING, cjson.encode({ graph = graph, created = info[7] or nil, ends = redis.call('HINCRBY', key, 'ends', 1),
              finished = finished, failed = failed, cancelled = cancelled }))
            calls_back = true
          end
        end
      end
    end
  end
  redis.call('PEXPIRE', key, integer(ttl_ms))
  redis.call('PEXPIRE', jobs, integer(ttl_ms))
  return calls_back
end
