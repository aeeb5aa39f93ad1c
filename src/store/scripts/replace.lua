-- Submits a job in place of the one that holds its unique key. That one ends in `error`, if it waits.
--
-- ARGV: as submit.lua, for one job that has a unique key
-- returns as submit.lua: 'duplicate' and an id if the holder does not wait
-- needs: wrong_type job unique submit_jobs stop_job

local id, key = ARGV[5], UNIQUE .. ARGV[11]
local holder = holder_of(ARGV[11])
local status = holder and read(holder, 'status')[1]
local waits = { created = true, scheduled = true, waiting_for_prerequisites = true, dispatched = true }
if not waits[status or ''] then return submit_jobs(ARGV) end

redis.call('DEL', key)
local result = submit_jobs(ARGV)
local refusals = { exists = true, duplicate = true, unknown_prerequisite = true, broken_queue = true }
if refusals[result[1]] then
  redis.call('SET', key, holder)
  return result
end
-- A bare id is a control message: stop this job. An old worker may have it already.
stop_job({ holder, ARGV[2], holder, '', 'replaced by job ' .. id })
return result
