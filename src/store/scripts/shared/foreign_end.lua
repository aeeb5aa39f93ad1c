-- Jobs that foreign actors end by writing their hash.
-- needs: time names job counters index ends events legacy rhailib amqp graph_end cron_end ending dependents notify

-- Does what belongs to an end that a foreign actor wrote.
local function note_foreign_end(id, script_type, at, retention)
  local f = read(id, 'status', 'unique_key', 'dependents', 'retention', 'output', 'error', 'legacy',
    'reply', 'graph_id', 'cron')
  -- The end is known if the job expires, or stands in the index of its end.
  if redis.call('PTTL', JOB .. id) >= 0 then return end
  if redis.call('ZSCORE', index_of(f[1], script_type), id) then return end
  log_event(id, f[1], script_type)
  local for_ms = set_expiry(id, f[1], f[4], retention)
  enter_ended(id, f[1], end_of(f[1], f[6]), script_type, at, at + for_ms * 1000)
  count(script_type, f[1] == 'finished' and 'finished' or intended_end(f[6]) or 'failed')
  tell_outcome(id, script_type, f[1], f[6], false, at)
  release_unique(id, f[2], f[1] == 'finished' and at)
  local text = (f[1] == 'finished' and f[5] or f[6]) or ''
  -- An old worker replies only in its own spelling, if at all.
  if LEGACY and f[7] and not says_no(f[8]) then
    if redis.call('EXISTS', REPLY .. id) == 0 then push_reply(id, f[1], text) end
    if redis.call('EXISTS', LEGACY_REPLY .. id) == 0 then reply_to_legacy(id, text) end
  end
  if string.sub(id, 1, #TASK_JOB) == TASK_JOB then answer_task_of(id, f[1], text, rfc3339(at)) end
  if string.sub(id, 1, #AMQP_JOB) == AMQP_JOB then tell_brokers(id, at) end
  if present(f[10]) then note_cron_end(f[10], id, f[1], text, at) end
  if present(f[9]) then note_in_graph(f[9], id, f[1], text, at, for_ms) end
  if present(f[3]) then
    tell_dependents({ { id = id, status = f[1], dependents = f[3] } }, at, retention)
  end
end
