-- Makes one step that was left because one call may not do more: tells further dependents of a job,
-- registers a job at further prerequisites, keeps further ended prerequisites for a job, stops further jobs of a graph, or starts the callbacks
-- of a graph that has ended.
--
-- ARGV: 1 retention of dependents that fail  2 a random text, which no other call has
-- returns 1 if there was something to do
-- needs: wrong_type time job counters prerequisites awaited waiting dependents submit_jobs
-- rarely: rights stop_graph

local at, retention = now_us(), ARGV[1]

-- Those that have ended meanwhile tell the job at once.
local function register(id, waits)
  local ended = {}
  for _, entry in ipairs(waits) do
    -- The job may have ended, or been deleted.
    if redis.call('SISMEMBER', PENDING .. id, entry) == 1 then
      local prerequisite = prerequisite_of(entry)
      local status = read(prerequisite, 'status')[1] or 'error'
      if status == 'finished' or status == 'error' then
        ended[#ended + 1] = { id = prerequisite, status = status, left = { id } }
      else
        register_at(prerequisite, id)
      end
    end
  end
  tell_dependents(ended, at, retention)
end

-- Submits one callback of a graph, if it asked for it. Its text is a JSON array: script type, group,
-- instance, priority, unique key; then fields and values. Nobody can take its id first: it is random, and submitters cannot
-- choose such ids.
local function call_back(ended, name, state)
  local key = GRAPH .. ended.graph
  local f = redis.call('HMGET', key, name, 'name', 'jobs', 'created_at')
  -- A later graph may have the id of the one that has ended.
  if not f[1] or ended.created and ended.created ~= f[4] then return end
  -- Ids tell their shard.
  local shard = string.match(ended.graph, '^s[1-9]%d*%-') or ''
  local id = shard .. 'callback-' .. string.sub(redis.sha1hex(name .. ARGV[2]), 1, 32)
  local given, variables, own = cjson.decode(f[1]), {}, {}
  local fields = { 'id', id, 'graph_id', ended.graph, 'graph_callback', name }
  for place = 6, #given, 2 do
    if given[place] == 'env_vars' then
      variables = cjson.decode(given[place + 1])
    else
      own[given[place]] = given[place + 1]
      fields[#fields + 1] = given[place]
      fields[#fields + 1] = given[place + 1]
    end
  end
  variables.HERO_GRAPH_ID, variables.HERO_GRAPH_NAME = ended.graph, f[2] or ''
  variables.HERO_GRAPH_STATE, variables.HERO_GRAPH_JOBS = state, f[3]
  for _, outcome in ipairs({ 'finished', 'failed', 'cancelled' }) do
    variables['HERO_GRAPH_' .. string.upper(outcome)] = integer(ended[outcome])
  end
  local args = { 'start', retention, '1', '', id, given[1], given[2], given[3], given[4], own.where or '', '', given[5],
    '0', tostring(#fields + 6) }
  for _, text in ipairs(fields) do args[#args + 1] = text end
  for _, text in ipairs({ 'env_vars', cjson.encode(variables), 'status', '', 'created_at', '' }) do
    args[#args + 1] = text
  end
  local result = submit_jobs(args)
  local job = result[1] == 'duplicate'
    and rarely().visible_id(rarely().rights_of_submitter(own.caller_id, own.bounds), result[2])
    or result[1] ~= 'exists' and id or ''
  if job == '' then redis.call('HDEL', key, name .. '_job') else redis.call('HSET', key, name .. '_job', job) end
end

local function call_back_all(ended)
  local state = ended.failed > 0 and 'failed' or ended.cancelled > 0 and 'cancelled' or 'finished'
  call_back(ended, state == 'finished' and 'on_success' or 'on_failure', state)
  call_back(ended, 'on_end', state)
end

local entry = redis.call('LPOP', SETTLING)
if not entry then return 0 end
entry = cjson.decode(entry)
if entry.waits then
  register(entry.id, entry.waits)
elseif entry.keeps then
  if has_not_ended(entry.id) then keep_all_for(entry.id, entry.keeps) end
elseif entry.stops then
  rarely().stop_some(entry, retention)
elseif entry.graph then
  call_back_all(entry)
else
  tell_dependents({ entry }, at, retention)
end
write_counts()
return 1
