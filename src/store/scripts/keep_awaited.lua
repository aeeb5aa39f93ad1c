-- Looks at ended jobs that would have expired, but for the jobs that may need their outputs and files. A job that
-- is needed is kept until the next look, any other expires.
--
-- ARGV: 1 limit on jobs
-- returns { jobs it looked at, us until the next look or -1 }
-- needs: wrong_type time names job index sweep awaited

local at = now_us()
-- The next look comes after this part of the time since the job ended, within bounds.
local PART, LEAST_US, MOST_US, SLACK_US = 8, 1000000, 21600000000, 60000000
despite_full_memory()

local function keep(id, status, script_type, graph, ended_us)
  local look = at + math.max(LEAST_US, math.min((at - ended_us) / PART, MOST_US))
  redis.call('ZADD', AWAITED, integer(look), id)
  expire_job(id, AWAITED_MS)
  -- Lists show it for as long.
  redis.call('ZADD', index_of(status, script_type), integer(look + SLACK_US), id)
  if not legal_id(graph) then return end
  for _, key in ipairs({ GRAPH .. graph, GRAPH_JOBS .. graph }) do
    local ttl_ms = redis.call('PTTL', key)
    if ttl_ms >= 0 and ttl_ms < AWAITED_MS then redis.call('PEXPIRE', key, integer(AWAITED_MS)) end
  end
end

local due = redis.call('ZRANGEBYSCORE', AWAITED, '-inf', integer(at), 'LIMIT', 0, ARGV[1])
for _, id in ipairs(due) do
  local f = read(id, 'status', 'script_type', 'actor', 'finished_at', 'graph_id')
  local script_type = type_of_job(f[2], f[3])
  if f[1] ~= 'finished' and f[1] ~= 'error' then
    -- It runs again, or is gone.
    redis.call('ZREM', AWAITED, id)
    if not f[1] then redis.call('DEL', AWAITING .. id) end
  elseif is_awaited(id, at) then
    keep(id, f[1], script_type, f[5], microseconds(f[4]))
  else
    redis.call('ZREM', AWAITED, id)
    redis.call('ZREM', index_of(f[1], script_type), id)
    leave_ends(f[1], script_type, id)
    expire_job(id, 1)
  end
end
return { #due, us_until_first(AWAITED, at) }
