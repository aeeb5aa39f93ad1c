-- Begins waits at the end of an attempt.
-- needs: names job prerequisites waits waiting awaited

-- Takes the event of a wait out of those that the job was told before. Nil if there is none; one that comes from
-- a caller who may not tell it goes.
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

-- Makes a job wait for the ends of others. Returns false if all have ended.
local function await_jobs(id, others)
  local state_of, pending, over = states_seen_by(id), {}, {}
  for _, other in ipairs(others) do
    local state = state_of(other)
    if state == 'finished' or state == 'error' then
      over[#over + 1] = other
    elseif state ~= 'missing' then
      pending[#pending + 1] = ANY .. other
    end
  end
  keep_all_for(id, over)
  if #pending > 0 then add_dependent(id, pending) end
  return #pending > 0
end

-- Writes what a job waits for, until `ends`. Returns the event if that has come already; else nil, and when to look at
-- it.
local function begin_wait(id, text, ends, at)
  local wait = json_table(text) or {}
  redis.call('HDEL', JOB .. id, 'event')
  redis.call('HSET', JOB .. id, 'wait', text)
  redis.call('DEL', PENDING .. id)
  local told = wait.event and take_told_event(id, wait)
  if told then return told end
  local others = jobs_of_wait(id, wait)
  if not others then return nil, ends end
  if not await_jobs(id, others) then return jobs_event(id, wait, at) end
  return nil, math.min(ends, at + WAIT_LOOK_US)
end
