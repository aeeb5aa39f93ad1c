-- The windows of graphs, and their pauses, as limits of a claim.
-- needs: time names job windows

-- Returns the window of a job, a limit: of its graph, if that has one.
local window_of
do
  local of_graphs = {}

  -- Returns the limit of those jobs that start after the first ones: `left` is how many may start.
  local function pause_of(graph, pause_after, first, goes_on_us, pause_ms)
    if not pause_after and not goes_on_us then return nil end
    first = first or ''
    local most = tonumber(string.match(pause_after or '', '^%d+') or '') or 0
    local _, started = string.gsub(first, '%S+', '')
    local left = most - started
    if goes_on_us then
      local at = now_us()
      local ends = not_ahead(goes_on_us, at + (tonumber(pause_ms or '') or 0) * 1000)
      if ends ~= tonumber(goes_on_us) then redis.call('HSET', GRAPH .. graph, 'goes_on_us', integer(ends)) end
      left = ends > at and 0 or math.huge
    end
    return { name = limit_of_pause(graph), left = left, first = first, of_graph = GRAPH .. graph }
  end

  function window_of(id, graph)
    local window = of_graphs[graph]
    if window == nil then
      local f = redis.call('HMGET', GRAPH .. graph, 'at_a_time', 'stop_after', 'stopped', 'pause_after', 'first', 'goes_on_us', 'pause_ms')
      window = (f[1] or f[2] or f[3] or f[4] or f[6])
        and { name = limit_of_graph(graph), running = f[3] and 0 or tonumber(f[1] or ''), is_stopped = f[3],
          pause = not f[3] and pause_of(graph, f[4], f[5], f[6], f[7]) or nil }
      of_graphs[graph] = window or false
    end
    if not window or not redis.call('ZSCORE', GRAPH_JOBS .. graph, id) then return nil end
    -- A job that came after the others were ended.
    if window.is_stopped then end_unstarted(graph) end
    return window
  end
end
