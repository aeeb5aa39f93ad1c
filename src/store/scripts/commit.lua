-- Commits an atomic batch: staged jobs get their names and are dispatched, or the batch is refused
-- and nothing is written. All parts of the jobs were staged before, so this takes some microseconds
-- a job; the caller bounds their number.
--
-- ARGV: 1 batch id  2 retention  3 number of jobs, then for each: id, script type, group,
--       instance, priority, run_at in us or '', unique key or '', number of prerequisites within the
--       batch, '1' if its field has no room for all dependents, number of prerequisites outside of
--       the batch, these ('?' before one that only has to end)
-- returns { 0, '', '' }, or the place of the first refused job and the reason:
--       'exists', ''                  its id is taken
--       'duplicate', id               this job holds its unique key
--       'unknown_prerequisite', id
--       'broken_queue', key           its work list is a key of another type
--       or { -1, '', '' } if the staged jobs have expired
-- needs: wrong_type time names routing job counters index events unique legacy queue ending prerequisites waiting dependents

local batch, retention, number = STAGED .. ARGV[1], ARGV[2], tonumber(ARGV[3])
local PER_CALL = 1000
local at = now_us()
local when = rfc3339(at)
local jobs, refusal = {}, nil

local function refuse(place, code, detail)
  refusal = refusal or { place, code, detail }
end

local next_arg = 4
for place = 1, number do
  local a = next_arg
  next_arg = a + 10 + tonumber(ARGV[a + 9])
  local job = {
    id = ARGV[a], script_type = ARGV[a + 1],
    queue = queue_of(ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]),
    due = tonumber(ARGV[a + 5]) or 0, unique_key = ARGV[a + 6],
    within = ARGV[a + 7] ~= '0', more = ARGV[a + 8] == '1', others = {},
  }
  if next_arg > a + 10 then
    local unknown
    job.others, job.failed, unknown = look_at_prerequisites(ARGV, a + 10, next_arg - 1)
    if unknown then refuse(place, 'unknown_prerequisite', unknown) end
  end
  if job.unique_key ~= '' then
    local holder = holder_of(job.unique_key)
    if holder then refuse(place, 'duplicate', holder) end
  end
  jobs[place] = job
end

local kinds = {}
for first = 1, number, PER_CALL do
  local keys = {}
  for place = first, math.min(first + PER_CALL - 1, number) do
    local job = jobs[place]
    keys[#keys + 1] = JOB .. job.id
    if job.queue and not kinds[job.queue] then
      kinds[job.queue] = redis.call('TYPE', WORK .. job.queue).ok
    end
    if not job.queue or kinds[job.queue] ~= 'list' and kinds[job.queue] ~= 'none' then
      refuse(place, 'broken_queue', WORK .. (job.queue or ''))
    end
  end
  if redis.call('EXISTS', unpack(keys)) > 0 then
    for offset, key in ipairs(keys) do
      if redis.call('EXISTS', key) == 1 then refuse(first + offset - 1, 'exists', '') end
    end
  end
end
if refusal then return refusal end
if redis.call('GET', batch) ~= ARGV[3] then return { -1, '', '' } end

-- Gathers ids, and entries of a sorted set, that are written a thousand in a call.
local function gather(into, name, id, score)
  local of = into[name]
  if not of then
    of = { ids = {}, entries = {} }
    into[name] = of
  end
  of.ids[#of.ids + 1] = id
  of.entries[#of.entries + 1] = integer(score)
  of.entries[#of.entries + 1] = id
end

local function each_thousand(values, step, call)
  for first = 1, #values, step do
    call(unpack(values, first, math.min(first + step - 1, #values)))
  end
end

local function rename(from, to)
  redis.call('RENAME', from, to)
  redis.call('PERSIST', to)
end

local pushes, waiting, failed = {}, {}, {}
for place, job in ipairs(jobs) do
  local id, staged = job.id, batch .. ':' .. job.id
  rename(staged, JOB .. id)
  if job.within then rename(staged .. ':pending', PENDING .. id) end
  if job.more then rename(staged .. ':dependents', DEPENDENTS .. id) end
  if job.unique_key ~= '' then redis.call('SET', UNIQUE .. job.unique_key, id) end
  count(job.script_type, 'submitted')
  local score = at + place - 1
  if job.failed then
    failed[#failed + 1] = job
  elseif job.within or #job.others > 0 then
    log_event(id, 'waiting_for_prerequisites', job.script_type)
    if not job.within then
      redis.call('HSET', JOB .. id, 'status', 'waiting_for_prerequisites')
    end
    gather(waiting, job.script_type, id, score)
    if #job.others > 0 then add_dependent(id, job.others) end
  elseif job.due > at then
    log_event(id, 'scheduled', job.script_type)
    redis.call('HSET', JOB .. id, 'status', 'scheduled')
    enter('scheduled', job.script_type, id, job.due)
  else
    log_event(id, 'dispatched', job.script_type)
    redis.call('HSET', JOB .. id, 'status', 'dispatched')
    gather(pushes, job.queue, id, score)
  end
end
redis.call('DEL', batch)

for script_type, of in pairs(waiting) do
  register(TYPES, script_type)
  local index = index_of('waiting_for_prerequisites', script_type)
  each_thousand(of.entries, 2 * PER_CALL, function(...) redis.call('ZADD', index, ...) end)
end
for queue, of in pairs(pushes) do
  register(TYPES, type_of_queue(queue))
  register(QUEUES, queue)
  each_thousand(of.entries, 2 * PER_CALL, function(...) redis.call('ZADD', READY .. queue, ...) end)
  each_thousand(of.ids, PER_CALL, function(...) redis.call('RPUSH', WORK .. queue, ...) end)
  if LEGACY then
    for _, id in ipairs(of.ids) do copy_to_legacy(id, queue) end
  end
end

-- Dependents dispatched from here on stand behind the jobs above.
pushed = pushed + number
local ended = {}
for _, job in ipairs(failed) do
  redis.call('DEL', PENDING .. job.id)
  local f = read(job.id, 'reply', 'retention', 'dependents')
  job.reply, job.retention = f[1], f[2]
  end_job(job.id, job, 'error', PREREQUISITE_FAILED .. job.failed, nil, at, retention)
  note_failed_dependent(job.id, job.failed)
  if present(f[3]) then
    ended[#ended + 1] = { id = job.id, status = 'error', dependents = f[3] }
  end
end
if #ended > 0 then tell_dependents(ended, at, retention) end
write_counts()
return { 0, '', '' }
