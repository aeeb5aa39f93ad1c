-- Writes ends of jobs for notifications.
-- needs: time names job wanted

local add_event, told_fields, tell_outcome, tell_graph_end
do
  -- Adds an event on a job to the stream; `more` has further fields and values. A failure loses the event alone: no job waits for a notification.
  function add_event(id, script_type, kind, special, f, text, more)
    local EVENTS_LEN_MAX, TEXT_BYTES_MAX = 20000, 1000
    local fields = { 'event', kind, 'id', id or '', 'type', script_type or '' }
    local function add(name, value)
      if not present(value) then return end
      fields[#fields + 1] = name
      fields[#fields + 1] = string.sub(value, 1, TEXT_BYTES_MAX)
    end
    for place, name in ipairs({ 'notify', 'name', 'group', 'caller', 'tags', 'graph', 'exit_code', 'hostname',
      'attempts', 'cron' }) do
      add(name, f[place])
    end
    add('special', special)
    add('error', text)
    for place = 1, more and #more or 0, 2 do add(more[place], more[place + 1]) end
    redis.pcall('XADD', NOTIFY_EVENTS, 'MAXLEN', '~', EVENTS_LEN_MAX, '*', unpack(fields))
  end

  -- Reads what an event tells of a job.
  function told_fields(id)
    return read(id, 'notify', 'name', 'group', 'caller_id', 'tags', 'graph_id', 'exit_code', 'hostname', 'attempt',
      'cron')
  end

  -- Notes that jobs like this one fail, or returns true if it is the first to finish after they did.
  local function note_failing(script_type, f, has_failed, at)
    local FAILING_MAX, TTL_S, WORD_BYTES_MAX = 10000, '2592000', 200
    local like = (script_type or '') .. ' ' .. (present(f[2]) or '@' .. (present(f[3]) or 'default'))
    like = string.sub(like, 1, WORD_BYTES_MAX)
    if not has_failed then return redis.pcall('HDEL', NOTIFY_FAILING, like) == 1 end
    local length = redis.pcall('HLEN', NOTIFY_FAILING)
    if type(length) ~= 'number' or length >= FAILING_MAX then return end
    redis.pcall('HSET', NOTIFY_FAILING, like, integer(at))
    redis.pcall('EXPIRE', NOTIFY_FAILING, TTL_S)
  end

  -- Tells notifications that a job has ended, if they want it. A job that was stopped or replaced did not fail.
  function tell_outcome(id, script_type, status, text, is_dead, at)
    local wanted = wanted_kinds(at)
    local kind = status == 'finished' and 'finished' or 'failed'
    if not wanted or kind == 'failed' and intended_end(text) then return end
    local f = told_fields(id)
    local special = is_dead and 'dead' or nil
    if wanted.recovered and note_failing(script_type, f, kind == 'failed', at) then special = 'recovered' end
    if special == 'recovered' or wanted[kind] or present(f[1]) and wanted[kind .. ' named'] then
      add_event(id, script_type, kind, special, f, kind == 'failed' and text)
    end
  end

  -- Tells the notifications that a graph or batch names that it has ended, with the number of its jobs by outcome.
  function tell_graph_end(graph, names, finished, failed, cancelled, at)
    local wanted = wanted_kinds(at)
    local kind = failed > 0 and 'failed' or 'finished'
    if not wanted or not (wanted[kind] or wanted[kind .. ' named']) then return end
    local f = redis.call('HMGET', GRAPH .. graph, 'name', 'caller', 'kind', 'jobs')
    add_event(nil, nil, kind, nil, { names, f[1], nil, f[2], nil, graph }, nil, {
      'whole', f[3], 'jobs', f[4], 'finished', integer(finished), 'failed', integer(failed), 'cancelled', integer(cancelled) })
  end
end
