-- Changes the window of a graph or batch, or ends its pause.
--
-- ARGV: 1 id  2 at_a_time  3 stop_after  4 pause_after, each '' to leave it, or '0' for none; 'go' ends the pause
--       5 the length of the pause in ms, or '' if it ends by 'go' alone  6 the rights of the caller
-- returns 1; 0 if there is none that the caller may change; 2 if no pause is to end
-- needs: caller windows time

local graph = ARGV[1]
local key = GRAPH .. graph
if redis.call('EXISTS', key) == 0 or not caller_may_change_graph(graph) then return 0 end
local pause = ARGV[4]
local has_pause = redis.call('HEXISTS', key, 'pause_after') == 1
if pause == 'go' and not has_pause then return 2 end

local function set(name, value)
  if value == '' then return end
  if value == '0' then redis.call('HDEL', key, name) else redis.call('HSET', key, name, value) end
end

set('at_a_time', ARGV[2])
set('stop_after', ARGV[3])
keep_windows()
if pause == 'go' or pause == '0' and has_pause then
  local at = now_us()
  local goes_on_us = tonumber(redis.call('HGET', key, 'goes_on_us') or '')
  -- What it went on at before stays.
  if not goes_on_us or goes_on_us > at then redis.call('HSET', key, 'goes_on_us', integer(at)) end
  if pause == '0' then redis.call('HDEL', key, 'pause_after', 'pause_ms', 'first') end
elseif pause ~= '' and pause ~= '0' then
  -- It counts the jobs that start from now on.
  redis.call('HDEL', key, 'first', 'goes_on_us')
  set('pause_after', pause)
  set('pause_ms', ARGV[5] ~= '' and ARGV[5] or '0')
end
if ARGV[3] == '0' then redis.call('HDEL', key, 'failures') end
if ARGV[3] ~= '' and ARGV[3] ~= '0' then
  local first_failed, last_failed = 2000000000, 2999999999
  redis.call('HSETNX', key, 'failures', redis.call('ZCOUNT', GRAPH_JOBS .. graph, first_failed, last_failed))
  stop_at_failures(graph)
end
return 1
