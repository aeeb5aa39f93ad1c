-- Fires a periodic job once for each due time, however many supervisors try.
--
-- ARGV: 1 name  2 due time in us  3 'allow' | 'skip' | 'replace': action if the job of the last
--       firing has not ended  4 retention  5 id of the job, another one if it is taken  6 unless 'allow': the age in
--       us of a firing that was missed and is made up for, 0 if none is  7 the reason why it has no job, else
--       empty  then the arguments of `submit`; or, where it submits a batch: 'ask' alone, to learn if it is to be staged; then
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
-- needs: wrong_type time names job reserved submit_jobs stop_job cron
-- rarely: decide_batch

local WHY_BYTES_MAX = 200
local name, due, overlap = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local key = CRON .. name
local f = redis.call('HMGET', key, 'due_us', 'id', 'disabled_at', 'history', 'makes_up_us', 'made_up_us')
if f[1] == nil then return { 'failed', key .. ' has the wrong type' } end
-- A firing of the future was noted before the clock was set back: it holds back none.
local fired_us = tonumber(f[1] or '') or 0
if fired_us > not_ahead(fired_us, math.max(now_us(), due)) then fired_us = 0 end
if f[3] or fired_us >= due then return { 'past', '' } end

-- A later job may have the id of the job of the last firing.
local before = legal_id(f[2])
local last = before and read(before, 'status', 'cron') or {}
local status = last[2] == name and last[1]
local on_its_way = status and status ~= 'finished' and status ~= 'error'
if before and not status then
  local batch = redis.call('HMGET', GRAPH .. before, 'cron', 'ended_at')
  on_its_way = batch[1] == name and not batch[2]
end

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
  if is_missed and on_its_way then
    if not makes_up then redis.call('HSET', key, 'makes_up_us', integer(now_us())) end
    return { 'waits', before }
  end
end
local function note(did, of_job, why, is_batch)
  redis.call('HSET', key, 'due_us', integer(due))
  redis.call('EXPIRE', key, CRON_TTL_S)
  local firing = { due = rfc3339(due), at = rfc3339(now_us()), did = did, id = of_job, batch = is_batch }
  firing.why = why and string.sub(why, 1, WHY_BYTES_MAX)
  remember(key, f[4], firing)
end
if ARGV[7] ~= '' then
  note('failed', nil, ARGV[7])
  return { 'failed', ARGV[7] }
end
if on_its_way and overlap == 'skip' then
  redis.call('HINCRBY', key, 'left_out', 1)
  note('left_out', before, 'overlap', not status or nil)
  return { 'left_out', before }
end
local id = ARGV[5]
if ARGV[8] == 'ask' then return { 'stage', '' } end
if ARGV[8] == 'batch' then
  local decided = rarely().decide_batch(ARGV[9], ARGV[10], ARGV[12], ARGV, 13, now_us())
  if decided == -1 then return { 'expired', '' } end
  if decided == -2 then return { 'taken', id } end
  redis.call('HSET', key, 'id', id, 'batch_id', id, 'fired_us', integer(due))
  redis.call('HINCRBY', key, 'fired', 1)
  note('fired', id, ARGV[11] ~= '' and ARGV[11] or nil, true)
  return { 'fired', id }
end
-- Another job took the id of this firing in advance.
if is_taken(id) then
  id = id .. '-' .. string.sub(redis.sha1hex(integer(now_us())), 1, 8)
  ARGV[12] = id
end
-- A bare id is a control message: stop this job.
if on_its_way and overlap == 'replace' then
  stop_job({ before, ARGV[4], before, '', 'replaced by job ' .. id })
end

local result = submit_jobs({ unpack(ARGV, 8) })
if result[1] == 'broken_queue' then
  note('failed', nil, result[2])
  return { 'failed', result[2] }
end
if result[1] == 'duplicate' then
  redis.call('HINCRBY', key, 'left_out', 1)
  note('left_out', result[2], 'unique_key')
  return { 'left_out', result[2] }
end
redis.call('HSET', key, 'id', id, 'fired_us', integer(due))
redis.call('HSET', JOB .. id, 'cron', name)
redis.call('HINCRBY', key, 'fired', 1)
note('fired', id, on_its_way and overlap == 'replace' and 'replaced ' .. before or nil)
return { 'fired', id }
