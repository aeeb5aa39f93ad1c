-- Notes that a foreign actor has started a job. Its score in the index of `started` is when to look
-- at it next.
-- needs: time names job counters index events

local function note_foreign_start(id, script_type, at)
  redis.call('HDEL', JOB .. id, 'boot_id')
  if not present(read(id, 'started_at')[1]) then
    redis.call('HSET', JOB .. id, 'started_at', rfc3339(at))
  end
  if enter('started', script_type, id, at) == 1 then
    count(script_type, 'started')
    log_event(id, 'started', script_type)
  end
end
