-- Changes the window of a graph or batch.
--
-- ARGV: 1 id  2 at_a_time  3 stop_after, each '' to leave it, or '0' for none  4 the rights of the caller
-- returns 1, or 0 if there is none that the caller may change
-- needs: caller windows

local graph = ARGV[1]
local key = GRAPH .. graph
if redis.call('EXISTS', key) == 0 or not caller_may_change_graph(graph) then return 0 end

local function set(name, value)
  if value == '' then return end
  if value == '0' then redis.call('HDEL', key, name) else redis.call('HSET', key, name, value) end
end

set('at_a_time', ARGV[2])
set('stop_after', ARGV[3])
keep_windows()
if ARGV[3] == '0' then redis.call('HDEL', key, 'failures') end
if ARGV[3] ~= '' and ARGV[3] ~= '0' then
  local first_failed, last_failed = 2000000000, 2999999999
  redis.call('HSETNX', key, 'failures', redis.call('ZCOUNT', GRAPH_JOBS .. graph, first_failed, last_failed))
  stop_at_failures(graph)
end
return 1
