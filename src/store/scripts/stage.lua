-- Stages jobs of an atomic batch under keys that no reader of jobs knows, and reserves their ids and
-- unique keys: one step. Or refuses the batch: all that it has staged is void. All of it expires if the
-- commit never comes.
--
-- ARGV: 1 batch id  2 time in s within which the next step must come  3 TTL of staged keys in s
--       4 number of jobs staged before  5 number of jobs, then for each:
--       id, script type, group, instance, priority, `where`, run_at in us or '', unique key or '';
--       its graph or '', its place there, or '' if it comes last;
--       number of prerequisites outside of the batch, these ('?' before a job that only has to end);
--       number of entries of its pending set, these; number of dependents without room in its
--       field, these; number of fields and values, these, the last six 'input_files' with its value, if
--       it has files, 'status' with its value, 'created_at', '';
--       its status is final if it waits for another job of the batch; last: the rights of the caller
-- returns { 0, '', '' }, or the place of the first refused job and the reason:
--       'exists', ''                  its id is taken
--       'duplicate', id               this job holds its unique key; '' for one that the caller may not see
--       'unknown_prerequisite', id    there is none that the caller may see
--       'broken_queue', key           its work list is a key of another type
--       or { -1, '', '' } if the batch has expired
-- needs: wrong_type caller rights time names routing unique reserved waiting type_times

local batch, ttl_s, kept_s = STAGED .. ARGV[1], ARGV[2], ARGV[3]
local before, number = tonumber(ARGV[4]), tonumber(ARGV[5])
local when = rfc3339(now_us())
if before > 0 and redis.call('GET', batch) ~= ARGV[4] then return { -1, '', '' } end

local next_arg = 6
local function some()
  local first = next_arg + 1
  next_arg = first + tonumber(ARGV[next_arg])
  return { first, next_arg - 1 }
end

local kinds = {}
local function is_list(queue)
  kinds[queue] = kinds[queue] or redis.call('TYPE', WORK .. queue).ok
  return kinds[queue] == 'list' or kinds[queue] == 'none'
end

local function refusal_of(job)
  if is_taken(job.id) then return 'exists', '' end
  local holder = job.unique_key and holder_of(job.unique_key)
  if holder then return 'duplicate', visible_id(RIGHTS, holder) end
  local _, _, unknown = look_at_prerequisites(ARGV, job.others[1], job.others[2], caller_may_see)
  if unknown then return 'unknown_prerequisite', unknown end
  if not job.queue or not is_list(job.queue) then return 'broken_queue', WORK .. (job.queue or '') end
  return nil
end

-- All are looked at before anything is written.
local jobs = {}
for place = 1, number do
  local a = next_arg
  next_arg = a + 10
  local job = {
    id = ARGV[a], script_type = ARGV[a + 1],
    queue = queue_of(ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]),
    due = ARGV[a + 6], unique_key = present(ARGV[a + 7]),
    graph = present(ARGV[a + 8]), place = tonumber(ARGV[a + 9]),
    others = some(), pending = some(), dependents = some(), fields = some(),
  }
  local code, detail = refusal_of(job)
  if code then
    redis.call('DEL', batch)
    return { place, code, detail }
  end
  jobs[place] = job
end

local function add(command, key, range)
  for from = range[1], range[2], 1000 do
    redis.call(command, key, unpack(ARGV, from, math.min(from + 999, range[2])))
  end
  local is_any = range[2] >= range[1]
  if is_any then redis.call('EXPIRE', key, kept_s) end
  return is_any
end

for _, job in ipairs(jobs) do
  local key = batch .. ':' .. job.id
  local expected = type_time('expect_within', job.script_type)
  local expires = expected ~= nil
  for place = job.fields[1], job.fields[2], 2 do
    expires = expires or ARGV[place] == 'expires' or ARGV[place] == 'expect_within'
  end
  ARGV[job.fields[2]] = when
  if expected then redis.call('HSET', key, 'expect_within', expected) end
  -- One of its own wins.
  redis.call('HSET', key, unpack(ARGV, job.fields[1], job.fields[2]))
  redis.call('EXPIRE', key, kept_s)
  local entry = {
    id = job.id, script_type = job.script_type, queue = job.queue, due = job.due,
    unique_key = job.unique_key, graph = job.graph, place = job.place,
    files = ARGV[job.fields[2] - 5] == 'input_files', expires = expires or nil,
    others = add('RPUSH', key .. ':others', job.others),
    within = add('SADD', key .. ':pending', job.pending),
    more = add('RPUSH', key .. ':dependents', job.dependents),
    rights = RIGHTS ~= '' and RIGHTS or nil,
  }
  redis.call('SET', RESERVED .. job.id, ARGV[1], 'EX', kept_s)
  if job.unique_key then redis.call('SET', UNIQUE .. job.unique_key, job.id, 'EX', kept_s) end
  redis.call('RPUSH', batch .. '::jobs', cjson.encode(entry))
end
redis.call('EXPIRE', batch .. '::jobs', kept_s)
redis.call('SET', batch, before + number, 'EX', ttl_s)
return { 0, '', '' }
