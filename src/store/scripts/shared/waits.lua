-- Ends of waits. A job that waits is scheduled, with the time when its wait ends anyway; its field `wait` says
-- what it waits for.
-- needs: time names routing job index events queue

-- Gives a job the event that its wait ends with.
local function end_wait(id, event, at)
  redis.call('HDEL', JOB .. id, 'wait')
  redis.call('HSET', JOB .. id, 'event', event, 'wait_ended_at', rfc3339(at))
end

-- Sends a job that waits to its queue, with an event.
local function wake_waiting(id, script_type, queue, event, at)
  redis.call('ZREM', index_of('scheduled', script_type), id)
  redis.call('DEL', PENDING .. id)
  end_wait(id, event, at)
  log_event(id, 'dispatched')
  redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
  redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress', 'progress_text', 'unfinished_line')
  push_back(id, queue, at)
end

-- Reads a wait or told events; nil if another program wrote something else there.
local function json_table(text)
  local is_json, value = pcall(cjson.decode, present(text) or '')
  return is_json and type(value) == 'table' and value or nil
end

-- The event of a time that has passed.
local function timeout_event(at) return '{"timeout":true,"when":"' .. rfc3339(at) .. '"}' end

-- The event of jobs that have ended: each with its state, `missing` if it does not exist.
local function jobs_event(jobs, at)
  local states = {}
  for place, other in ipairs(type(jobs) == 'table' and jobs or {}) do
    states[place] = cjson.encode(tostring(other)) .. ':"'
      .. (legal_id(other) and read(other, 'status')[1] or 'missing') .. '"'
  end
  return '{"jobs":{' .. table.concat(states, ',') .. '},"when":"' .. rfc3339(at) .. '"}'
end

-- Tells if one of these names may tell the event of a wait.
local function may_tell(wait, names)
  local who = wait.who
  if type(who) ~= 'table' then return true end
  for _, permitted in ipairs(who) do
    for _, name in ipairs(names) do
      if name == permitted then return true end
    end
  end
  return false
end
