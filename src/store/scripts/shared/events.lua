-- The event log.
-- needs: names job

-- Logs a transition if the configuration asks for it. Called before the new state is written.
local function log_event() end
if EVENTS_ON then
  local EVENTS_LEN_MAX = 100000

  function log_event(id, to, script_type, actor)
    local f = read(id, 'status', 'script_type', 'actor')
    -- After a foreign actor has written the state, the one before is unknown.
    local from = f[1] ~= to and present(f[1]) or ''
    -- A key of another type must not stop the job.
    redis.pcall('XADD', EVENTS, 'MAXLEN', '~', EVENTS_LEN_MAX, '*', 'id', id, 'type',
      present(f[2]) or script_type or '', 'from', from, 'to', to, 'actor',
      actor or present(f[3]) or '')
  end
end
