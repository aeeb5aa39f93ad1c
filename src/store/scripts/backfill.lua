-- Submits the job or graph of a periodic job for a time of the past, beside its schedule. A second call does nothing while that
-- job is kept.
--
-- ARGV: 1 name  2 due time in us  3 'missing' to leave out a time for which it fired, else ''  4 id of the job of its firing
--       or graph, then the arguments of `submit`; or 'ask' and the id of the job or graph, to learn if it is to be submitted; of
--       a graph 'batch', its id while it is staged, its number of jobs, '', its id, its fields and values
-- returns two strings:
--       'submitted', id
--       'fired', id      it fired for this time, and that is left out
--       'exists', id     it was backfilled for this time before
--       'left_out', id   this job holds the unique key
--       'failed', why    the job was refused
--       'stage', ''      asked for, it is to be submitted, a graph to be staged: nothing is written
--       'expired', ''    the graph took too long to stage: nothing is written
-- needs: wrong_type time names job reserved submit_jobs cron
-- rarely: decide_batch

local name, due, fired_id, id = ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[9]
if ARGV[5] == 'ask' then id = ARGV[6] end
local key = CRON .. name
local history = redis.call('HGET', key, 'history')

local function exists(of) return is_taken(of) or redis.call('EXISTS', GRAPH .. of) == 1 end

-- Returns the job or graph of the firing for this time, if there was one.
local function fired()
  if exists(fired_id) then return fired_id end
  local day = string.sub(rfc3339(due), 1, 19)
  for _, firing in ipairs(json_table(history) or {}) do
    local is_of_time = type(firing.due) == 'string' and string.sub(firing.due, 1, 19) == day
    if is_of_time and firing.did == 'fired' and firing.why ~= 'backfill' then return firing.id or '' end
  end
end

-- Notes that it was submitted.
local function submitted(is_batch)
  redis.call('HINCRBY', key, 'fired', 1)
  redis.call('EXPIRE', key, CRON_TTL_S)
  remember(key, history, { due = rfc3339(due), at = rfc3339(now_us()), did = 'fired', id = id, why = 'backfill', batch = is_batch })
  return { 'submitted', id }
end

if exists(id) then return { 'exists', id } end
local before = ARGV[3] == 'missing' and fired()
if before then return { 'fired', before } end
if ARGV[5] == 'ask' then return { 'stage', '' } end
if ARGV[5] == 'batch' then
  local decided = rarely().decide_batch(ARGV[6], ARGV[7], id, ARGV, 10, now_us())
  if decided == -1 then return { 'expired', '' } end
  if decided == -2 then return { 'exists', id } end
  return submitted(true)
end
local result = submit_jobs({ unpack(ARGV, 5) })
if result[1] == 'duplicate' then return { 'left_out', result[2] } end
if result[1] == 'broken_queue' or result[1] == 'unknown_prerequisite' or result[1] == 'exists' then
  return { 'failed', result[1] .. ' ' .. tostring(result[2]) }
end
redis.call('HSET', JOB .. id, 'cron', name)
return submitted()
