-- Fires a periodic job once for each due time, however many supervisors try.
--
-- ARGV: 1 name  2 due time in us  3 'allow' | 'skip' | 'replace': action if the job of the last
--       firing has not ended  4 retention  5 id of the job, another one if it is taken  6 unless 'allow': the age in
--       us of a firing that was missed and is made up for, 0 if none is  7 the reason why it has no job, else
--       empty  then the arguments of `submit`; or, where it submits a batch or graph: 'ask', to learn if it is to be staged; then
--       'batch', its id while it is staged, its number of jobs, what its history says of it or '', its id, its fields
--       and values
-- returns two strings:
--       'fired', id
--       'past', ''       this firing, or a later one, was fired or left out before, or it is disabled
--       'left_out', id   this job has not ended, or holds the unique key
--       'waits', id      it is made up for once this job has ended: try again later
--       'failed', why    the job was refused; it does not fire for this time again
--       'stage', ''      the batch is to be staged: nothing is written
--       'expired', ''    the batch took too long to stage: nothing is written
--       'taken', id      another graph or batch has its id: nothing is written
-- needs: wrong_type time names job reserved submit_jobs stop_job windows cron
-- rarely: decide_batch

local WHY_BYTES_MAX = 200
local name, due, overlap = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local key = CRON .. name
local f = redis.call('HMGET', key, 'due_us', 'id', 'disabled_at', 'history', 'makes_up_us', 'made_up_us', 'ran_id')
if f[1] == nil then return { 'failed', key .. ' has the wrong type' } end
-- A firing of the future was noted before the clock was set back: it holds back none.
local fired_us = tonumber(f[1] or '') or 0
if fired_us > not_ahead(fired_us, math.max(now_us(), due)) then fired_us = 0 end
if f[3] or fired_us >= due then return { 'past', '' } end

-- The job or batch of the last firing, and the one that was run beside the schedule, if they have not ended.
local on_its_way = {}
local function look_at(id)
  id = legal_id(id)
  if not id then return end
  -- A later job may have the id.
  local last = read(id, 'status', 'cron')
  local status = last[2] == name and last[1]
  if status then
    if status ~= 'finished' and status ~= 'error' then table.insert(on_its_way, { id = id }) end
    return
  end
  local batch = redis.call('HMGET', GRAPH .. id, 'cron', 'ended_at')
  if batch[1] == name and not batch[2] then table.insert(on_its_way, { id = id, batch = true }) end
end
look_at(f[2])
look_at(f[7])
local before = on_its_way[1]

-- Firings that are made up for wait for each other. Firings that became due meanwhile, after them, were not
-- missed: else a job that runs for longer than its interval would never catch up.
local missed_us, makes_up, made_up = tonumber(ARGV[6]), tonumber(f[5] or ''), tonumber(f[6] or '')
if missed_us > 0 then
  if makes_up and due > makes_up then
    made_up = now_us()
    redis.call('HDEL', key, 'makes_up_us')
    redis.call('HSET', key, 'made_up_us', integer(made_up))
    makes_up = nil
  end
  local is_missed = makes_up or now_us() - due > missed_us and due > (made_up or 0)
  if is_missed and before then
    if not makes_up then redis.call('HSET', key, 'makes_up_us', integer(now_us())) end
    return { 'waits', before.id }
  end
end
local function note(did, of_job, why, is_batch)
  redis.call('HSET', key, 'due_us', integer(due))
  redis.call('EXPIRE', key, CRON_TTL_S)
  local firing = { due = rfc3339(due), at = rfc3339(now_us()), did = did, id = of_job, batch = is_batch }
  firing.why = why and string.sub(why, 1, WHY_BYTES_MAX)
  remember(key, f[4], firing)
end
-- Notes a firing without a job, as the failure of a job is noted.
local function fail(why)
  note('failed', nil, why)
  redis.call('HSET', CRON_ENDED .. name, 'failed_us', integer(now_us()), 'failed_id', '', 'failed_why', string.sub(why, 1, WHY_BYTES_MAX))
  redis.call('EXPIRE', CRON_ENDED .. name, CRON_TTL_S)
  return { 'failed', why }
end
if ARGV[7] ~= '' then return fail(ARGV[7]) end
if before and overlap == 'skip' then
  redis.call('HINCRBY', key, 'left_out', 1)
  note('left_out', before.id, 'overlap', before.batch)
  return { 'left_out', before.id }
end

-- Stops what is on its way, if this firing replaces it. Returns the reason for the history.
local function replace_by(id)
  if not before or overlap ~= 'replace' then return end
  local ids = {}
  for place, of in ipairs(on_its_way) do
    ids[place] = of.id
    -- A bare id is a control message: stop this job.
    if of.batch then stop_whole(of.id) else stop_job({ of.id, ARGV[4], of.id, '', 'replaced by job ' .. id }) end
  end
  return 'replaced ' .. table.concat(ids, ', ')
end
local id = ARGV[5]
if ARGV[8] == 'ask' then return { 'stage', '' } end
if ARGV[8] == 'batch' then
  local decided = rarely().decide_batch(ARGV[9], ARGV[10], ARGV[12], ARGV, 13, now_us())
  if decided == -1 then return { 'expired', '' } end
  if decided == -2 then return { 'taken', id } end
  redis.call('HSET', key, 'id', id, 'batch_id', id, 'fired_us', integer(due))
  redis.call('HINCRBY', key, 'fired', 1)
  local replaced = replace_by(id)
  local separator = replaced and ARGV[11] ~= '' and '; ' or ''
  local why = (replaced or '') .. separator .. ARGV[11]
  note('fired', id, why ~= '' and why or nil, true)
  return { 'fired', id }
end
-- Another job took the id of this firing in advance.
if is_taken(id) then
  id = id .. '-' .. string.sub(redis.sha1hex(integer(now_us())), 1, 8)
  ARGV[12] = id
end
local replaced = replace_by(id)
local result = submit_jobs({ unpack(ARGV, 8) })
if result[1] == 'broken_queue' then return fail(result[2]) end
if result[1] == 'duplicate' then
  redis.call('HINCRBY', key, 'left_out', 1)
  note('left_out', result[2], 'unique_key')
  return { 'left_out', result[2] }
end
redis.call('HSET', key, 'id', id, 'fired_us', integer(due))
redis.call('HSET', JOB .. id, 'cron', name)
redis.call('HINCRBY', key, 'fired', 1)
note('fired', id, replaced)
return { 'fired', id }
