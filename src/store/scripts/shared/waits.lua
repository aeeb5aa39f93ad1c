-- Ends of waits. A job that waits is scheduled until the time when its wait ends anyway; its field `wait` says
-- what it waits for.
-- needs: time names routing job index events queue prerequisites rights

-- A wait for jobs is looked at again after this time: an older version that ends the last of them does not wake it.
local WAIT_LOOK_US = 3600000000
-- Jobs that one call looks at for waits that are due; it looks at the others a second later.
local LOOKED_MAX, looked = 4000, 0

-- Gives a job the event that its wait ends with.
local function end_wait(id, script_type, event, at)
  redis.call('ZREM', index_of('waits', script_type), id)
  redis.call('HDEL', JOB .. id, 'wait')
  redis.call('HSET', JOB .. id, 'event', event, 'wait_ended_at', rfc3339(at))
  redis.call('DEL', PENDING .. id)
end

-- Sends a job that waits to its queue, with an event.
local function wake_waiting(id, script_type, queue, event, at)
  redis.call('ZREM', index_of('scheduled', script_type), id)
  end_wait(id, script_type, event, at)
  log_event(id, 'dispatched', script_type)
  redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', rfc3339(at))
  redis.call('HDEL', JOB .. id, 'started_at', 'actor', 'boot_id', 'progress', 'progress_text', 'unfinished_line')
  push_back(id, queue, at)
end

-- Returns the ids of the jobs that a wait is for; nil if it is for none.
local function jobs_of_wait(id, wait)
  if wait.children == true then return list_of_ids(read(id, 'children')[1]) end
  if type(wait.jobs) ~= 'table' then return nil end
  local ids = {}
  for _, other in ipairs(wait.jobs) do
    if legal_id(other) then ids[#ids + 1] = other end
  end
  return ids
end

-- Returns the function that tells the state of a job that a wait is for; 'missing' if it does not exist, or is of
-- another caller or beyond the bounds of the job, unless it is a child of the job or both are of one graph.
local function states_seen_by(id)
  local own = read(id, 'caller_id', 'graph_id', 'bounds')
  local rights, graph = rights_of_submitter(own[1], own[3]), present(own[2])
  -- A deleted graph may have left a job, and a later one may have its id.
  local function is_of_graph(one) return redis.call('ZSCORE', GRAPH_JOBS .. graph, one) end
  if graph and not is_of_graph(id) then graph = nil end
  return function(other)
    local f = read(other, 'status', 'graph_id', 'parent')
    local is_seen = f[1] and (allows(rights, 'see', other) or f[3] == id or graph and f[2] == graph and is_of_graph(other))
    return is_seen and f[1] or 'missing'
  end
end

-- The event of a time that has passed: with the event that has not come, which is refused from now on.
local function timeout_event(wait, at)
  local missed = type(wait.event) == 'string' and '"missed":' .. cjson.encode(wait.event) .. ',' or ''
  return '{"timeout":true,' .. missed .. '"when":"' .. rfc3339(at) .. '"}'
end

-- The event of jobs that have ended: each with its state. Of children, which may be many, it counts the states, and
-- names the first that did not finish.
local function jobs_event(id, wait, at)
  local FAILED_MAX = 100
  local state_of, states, counts, failed = states_seen_by(id), {}, {}, {}
  for _, other in ipairs(jobs_of_wait(id, wait) or {}) do
    local state = state_of(other)
    states[#states + 1] = '"' .. other .. '":"' .. state .. '"'
    counts[state] = (counts[state] or 0) + 1
    if state ~= 'finished' and #failed < FAILED_MAX then failed[#failed + 1] = '"' .. other .. '"' end
  end
  local text = '"jobs":{' .. table.concat(states, ',') .. '}'
  if wait.children == true then
    local numbers = {}
    for _, state in ipairs({ 'finished', 'error', 'missing' }) do
      numbers[#numbers + 1] = '"' .. state .. '":' .. integer(counts[state] or 0)
    end
    text = '"children":{' .. table.concat(numbers, ',') .. '},"failed":[' .. table.concat(failed, ',') .. ']'
  end
  return '{' .. text .. ',"when":"' .. rfc3339(at) .. '"}'
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

-- Returns the event of a job whose look is due: of the jobs that it waits for, if all have ended, or that its time has
-- passed. Nil if it waits on, and then when the next look is due.
local function event_of_due(id, text, ends, at)
  local wait = json_table(text) or {}
  local others = ends > at and jobs_of_wait(id, wait)
  if not others then return timeout_event(wait, at) end
  looked = looked + #others
  if looked > LOOKED_MAX and looked > #others then return nil, at + 1000000 end
  local state_of = states_seen_by(id)
  for _, other in ipairs(others) do
    local state = state_of(other)
    if state ~= 'missing' and state ~= 'finished' and state ~= 'error' then
      return nil, math.min(ends, at + WAIT_LOOK_US)
    end
  end
  return jobs_event(id, wait, at)
end
