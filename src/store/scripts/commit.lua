-- Commits an atomic batch: one step. The first only decides that all staged jobs are submitted: if it fails, none is.
-- From then on anyone may make the next steps, which give jobs their names and send them on their way.
--
-- The jobs stand in such an order that the dependents of each within the batch come before it. So a
-- job that ends between two steps finds all of them.
--
-- ARGV: 1 batch id, or '' for a batch whose client has gone
--       2 its number of jobs, to decide; else ''  3 retention
--       4 to decide: the graph that it becomes, with its fields and values, or ''
-- returns how many jobs are left, -1 if the batch has expired, or -2 if the id of the graph is taken
-- needs: wrong_type rights time names job counters index events ending prerequisites waiting awaited expiring dependents graph_start graph_end decide_batch

-- The work of one step: a job counts as two, each prerequisite outside of the batch as one.
local work = 400
-- Stands in the pending set of a job while some prerequisites are not in it yet.
local GUARD = '!'
local id_of_batch, retention = ARGV[1], ARGV[3]
if id_of_batch == '' then id_of_batch = redis.call('LINDEX', COMMITTING, 0) end
if type(id_of_batch) ~= 'string' then return 0 end
local batch = STAGED .. id_of_batch
local at = now_us()
local number, ended = 0, {}

if ARGV[2] ~= '' then return tonumber(decide_batch(id_of_batch, ARGV[2], ARGV[4], ARGV, 5, at)) end
local kept = string.match(redis.call('GET', batch) or '', '^kept (%d+)$')
if kept then
  keep_staged(batch, tonumber(kept))
  return redis.call('LLEN', batch .. '::jobs')
end

-- If it has expired, the job is not submitted.
local function rename(from, to)
  local moved = redis.pcall('RENAME', from, to)
  if not moved.err then redis.call('PERSIST', to) end
end

local function fail(job, prerequisite)
  redis.call('DEL', PENDING .. job.id)
  redis.call('ZREM', index_of('waiting_for_prerequisites', job.script_type), job.id)
  local f = read(job.id, 'reply', 'retention', 'dependents')
  job.reply, job.retention = f[1], f[2]
  end_job(job.id, job, 'error', PREREQUISITE_FAILED .. prerequisite, nil, at, retention)
  note_end(job.id, job.script_type, PREREQUISITE_FAILED .. prerequisite)
  note_failed_dependent(job.id, prerequisite)
  if present(f[3]) then
    ended[#ended + 1] = { id = job.id, status = 'error', dependents = f[3] }
  end
end

-- Gives a job its name and its state. Returns true if there are prerequisites to look at.
local function begin(job, staged)
  local id = job.id
  redis.call('DEL', RESERVED .. id)
  if job.graph then join_graph(job.graph, id, job.place, rights_of(job.rights or '').opening or id_of_batch) end
  if redis.call('EXISTS', staged) == 0 or redis.call('EXISTS', JOB .. id) == 1 then
    redis.call('DEL', staged, staged .. ':pending', staged .. ':dependents', staged .. ':others')
    if job.graph then note_in_graph(job.graph, id, 'error', 'stopped', at, 0) end
    return false
  end
  rename(staged, JOB .. id)
  if job.within then rename(staged .. ':pending', PENDING .. id) end
  if job.more then rename(staged .. ':dependents', DEPENDENTS .. id) end
  if job.unique_key then redis.call('SET', UNIQUE .. job.unique_key, id) end
  -- As `submit_jobs` does.
  if job.files then redis.pcall('EXPIRE', FILES .. id, 34560000) end
  if job.expires then note_latest_times(id) end
  count(job.script_type, 'submitted')
  number = number + 1
  if job.others then redis.call('SADD', PENDING .. id, GUARD) end
  if job.others or job.within then
    note_looked_at(id, 0, at)
    log_event(id, 'waiting_for_prerequisites', job.script_type)
    redis.call('HSET', JOB .. id, 'status', 'waiting_for_prerequisites')
    enter('waiting_for_prerequisites', job.script_type, id, at + number)
  else
    dispatch_or_schedule(id, job.queue, job.due, at)
  end
  return job.others
end

-- Makes a job wait for prerequisites outside of the batch. Returns true if some are left.
local function go_on(job, others)
  local id = job.id
  -- It may have been stopped since the last step.
  local waits = read(id, 'status')[1] == 'waiting_for_prerequisites'
    and (redis.call('SISMEMBER', PENDING .. id, GUARD) == 1 or has_wrong_type[PENDING .. id])
  local entries = waits and redis.call('LPOP', others, math.max(work, 1)) or {}
  work = work - #entries
  -- Another job may have the id since it was staged.
  local function may_see(prerequisite) return allows(job.rights or '', 'see', prerequisite) end
  local pending, failed, unknown, newest, over = look_at_prerequisites(entries, 1, #entries, may_see)
  if newest > at then note_looked_at(id, newest, at) end
  if waits and not failed and not unknown then
    add_dependent(id, pending)
    keep_all_for(id, over)
    if redis.call('EXISTS', others) == 1 then return true end
    redis.call('SREM', PENDING .. id, GUARD)
    if redis.call('SCARD', PENDING .. id) == 0 and not has_wrong_type[PENDING .. id] then
      redis.call('ZREM', index_of('waiting_for_prerequisites', job.script_type), id)
      dispatch_or_schedule(id, job.queue, job.due, at)
    end
    return false
  end
  redis.call('DEL', others)
  -- A missing prerequisite was deleted, or has expired, since it was staged.
  if waits then fail(job, failed or unknown) end
  return false
end

while work > 0 do
  local text = redis.call('LPOP', batch .. '::jobs')
  if not text then break end
  local job = cjson.decode(text)
  local staged = batch .. ':' .. job.id
  work = work - 2
  if (job.has_begun or begin(job, staged)) and go_on(job, staged .. ':others') then
    job.has_begun = true
    redis.call('LPUSH', batch .. '::jobs', cjson.encode(job))
  end
end
local left = redis.call('LLEN', batch .. '::jobs')
if left == 0 then
  redis.call('DEL', batch)
  redis.call('LREM', COMMITTING, 1, id_of_batch)
end
if #ended > 0 then tell_dependents(ended, at, retention) end
write_counts()
return left
