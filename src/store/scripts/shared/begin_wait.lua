-- Begins waits at the end of an attempt.
-- needs: waits waiting awaited

-- Takes the event of a wait out of those that the job was told before. Nil if there is none; one that comes from
-- somebody who may not tell it goes.
local function take_told_event(id, wait)
  local told = json_table(read(id, 'told_events')[1])
  if not told then return nil end
  local found, others = nil, {}
  for _, event in ipairs(told) do
    if type(event) ~= 'table' or event.event ~= wait.event then
      others[#others + 1] = event
    elseif type(event.names) == 'table' and type(event.json) == 'string' and may_tell(wait, event.names) then
      found = event.json
    end
  end
  if #others == #told then return nil end
  if #others == 0 then
    redis.call('HDEL', JOB .. id, 'told_events')
  else
    redis.call('HSET', JOB .. id, 'told_events', cjson.encode(others))
  end
  return found
end

-- Writes what a job waits for. Returns when it runs again: now, if that has come already.
local function begin_wait(id, text, due, at)
  local wait = json_table(text) or {}
  redis.call('HDEL', JOB .. id, 'event', 'wait')
  redis.call('DEL', PENDING .. id)
  local told = wait.event and take_told_event(id, wait)
  if told then
    end_wait(id, told, at)
    return at
  end
  if type(wait.jobs) == 'table' then
    local pending = {}
    for _, other in ipairs(wait.jobs) do
      if has_not_ended(other) then pending[#pending + 1] = ANY .. other end
    end
    if #pending == 0 then
      end_wait(id, jobs_event(wait.jobs, at), at)
      return at
    end
    add_dependent(id, pending)
  end
  redis.call('HSET', JOB .. id, 'wait', text)
  return due
end
