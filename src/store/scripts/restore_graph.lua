-- Restores a graph or batch, which does not end before `close_batch`; or restores jobs of it. What became of a
-- job is read from the job.
--
-- ARGV: 1 id  2 TTL in ms, or '' for its jobs  3... fields and values; or jobs, each with its score
-- returns 'ok', or 'exists' if the id is taken
-- needs: wrong_type time names windows

local graph, step = ARGV[1], 1000000000
local key, jobs = GRAPH .. graph, GRAPH_JOBS .. graph
if ARGV[2] ~= '' then
  if redis.call('EXISTS', key, jobs) > 0 then return 'exists' end
  redis.call('HSET', key, unpack(ARGV, 3))
  redis.call('HSET', key, 'open', '1')
  redis.call('HDEL', key, 'stopping')
  keep_windows()
  redis.call('PEXPIRE', key, ARGV[2])
  local created = microseconds(redis.call('HGET', key, 'created_at') or '')
  redis.call('ZADD', GRAPHS, integer(created), graph)
  return 'ok'
end

local function outcome_of(job, before)
  local f = redis.call('HMGET', JOB .. job, 'status', 'error', 'may_fail')
  if not f[1] then return before > 0 and before or 2 end
  if f[1] == 'finished' then return 1 end
  if f[1] ~= 'error' then return 0 end
  return intended_end(f[2]) and 3 or present(f[3]) and not says_no(f[3]) and 1 or 2
end

for number = 3, #ARGV, 2 do
  local score = tonumber(ARGV[number + 1])
  local outcome = outcome_of(ARGV[number], math.floor(score / step))
  redis.call('ZADD', jobs, integer(outcome * step + score % step), ARGV[number])
  -- It ends once more.
  if outcome == 0 then redis.call('HDEL', key, 'ended_at') end
end
local left_ms = redis.call('PTTL', key)
if left_ms > 0 then redis.call('PEXPIRE', jobs, left_ms) end
return 'ok'
