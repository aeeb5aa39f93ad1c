-- Stores jobs and sends each where it belongs: to its queue, the schedule, or to wait for its
-- prerequisites. Nothing of a job that is refused is written.
--
-- ARGV: 1  'start' to send the jobs on their way, 'create' to only store them
--       2  retention, for a job that fails at once because a prerequisite has failed
--       3  how many jobs
--       then for each job: id, script type, group, instance, priority, run_at in us or '',
--       unique key or '', how many prerequisites, these ('?' before one
--       that only has to end), how many fields and values, these; the
--       last four are 'status', '', 'created_at', ''
-- returns for each job two strings:
--       the state it is in now, ''
--       'exists', ''                  its id is taken
--       'duplicate', id               the job with its unique key is still on its way
--       'unknown_prerequisite', id
--       'broken_queue', key           its work list is a key of another type
-- seldom: conclude, read, holder_of, prerequisite_of, enter, add_dependent, moving

local starting = ARGV[1] == 'start'
local at = now_us()
local when = rfc3339(at)
local results = {}
local next_arg = 4

-- Pushes of one queue go out together.
local pushes = {}
local function pushes_to(queue, script_type)
  local push = pushes[queue]
  if not push then
    local kind = redis.call('TYPE', WORK .. queue).ok
    push = { ids = {}, entries = {}, script_type = script_type,
      is_broken = kind ~= 'list' and kind ~= 'none' }
    pushes[queue] = push
  end
  return push
end

-- The prerequisites that have not finished, or the one that is unknown, or the one that failed.
local function look_at_prerequisites(first, number)
  local pending, failed = {}, nil
  for i = first, first + number - 1 do
    local prerequisite = prerequisite_of(ARGV[i])
    local status = read(prerequisite, 'status')[1]
    if not status then return nil, prerequisite, nil end
    if status == 'error' then
      if prerequisite == ARGV[i] then failed = failed or prerequisite end
    elseif status ~= 'finished' then
      pending[#pending + 1] = ARGV[i]
    end
  end
  return pending, nil, failed
end

for number = 1, tonumber(ARGV[3]) do
  local a = next_arg
  local id, script_type, run_at, unique_key = ARGV[a], ARGV[a + 1], ARGV[a + 5], ARGV[a + 6]
  local first_prerequisite = a + 8
  local fields = first_prerequisite + ARGV[a + 7]
  local prerequisites = fields - first_prerequisite
  local first, last = fields + 1, fields + ARGV[fields]
  next_arg = last + 1

  local code, detail = nil, ''
  local pending, failed
  if redis.call('EXISTS', JOB .. id) == 1 then
    code = 'exists'
  elseif unique_key ~= '' then
    local holder = holder_of(unique_key)
    if holder then code, detail = 'duplicate', holder end
  end
  if not code and prerequisites > 0 then
    local unknown
    pending, unknown, failed = look_at_prerequisites(first_prerequisite, prerequisites)
    if unknown then code, detail = 'unknown_prerequisite', unknown end
  end

  local refused = code ~= nil
  local queue = queue_of(script_type, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
  local due = tonumber(run_at) or 0
  if not refused then
    if not starting then
      code = 'created'
    elseif failed then
      code = 'error'
    elseif pending and #pending > 0 then
      code = 'waiting_for_prerequisites'
    elseif due > at then
      code = 'scheduled'
    elseif pushes_to(queue, script_type).is_broken then
      code, detail, refused = 'broken_queue', WORK .. queue, true
    else
      code = 'dispatched'
    end
  end
  if not refused then
    ARGV[last - 2], ARGV[last] = code, when
    -- One that fails at once is told of where it is concluded.
    if EVENTS_ON and code ~= 'error' then moving(id, code, script_type) end
    redis.call('HSET', JOB .. id, unpack(ARGV, first, last))
    count(script_type, 'submitted')
    if unique_key ~= '' then redis.call('SET', UNIQUE .. unique_key, id) end
    if code == 'dispatched' then
      local push = pushes[queue]
      push.ids[#push.ids + 1] = id
      push.entries[#push.entries + 1] = integer(at + number - 1)
      push.entries[#push.entries + 1] = id
    elseif code == 'scheduled' then
      enter(code, script_type, id, due)
    elseif code == 'error' then
      local f = read(id, 'reply', 'retention')
      local job =
        { script_type = script_type, reply = f[1], unique_key = unique_key, retention = f[2] }
      conclude(id, job, 'error', 'prerequisite failed: ' .. failed, nil, at, ARGV[2])
    else
      enter(code, script_type, id, at + number - 1)
      if code == 'waiting_for_prerequisites' then add_dependent(id, pending) end
    end
  end
  results[#results + 1] = code
  results[#results + 1] = detail
end

for queue, push in pairs(pushes) do
  if not push.is_broken then
    register(TYPES, push.script_type)
    register(QUEUES, queue)
    redis.call('ZADD', READY .. queue, unpack(push.entries))
    redis.call('RPUSH', WORK .. queue, unpack(push.ids))
    if LEGACY then
      for _, id in ipairs(push.ids) do copy_to_legacy(id, queue) end
    end
  end
end
write_counts()
return results
