-- Makes one step that was left because one call may not do more: tells further dependents of a job, or
-- registers a job at further prerequisites.
--
-- ARGV: 1 retention of dependents that fail
-- returns 1 if there was something to do
-- needs: wrong_type time job counters prerequisites waiting dependents

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

local entry = redis.call('LPOP', SETTLING)
if not entry then return 0 end
entry = cjson.decode(entry)
if entry.waits then
  register(entry.id, entry.waits)
else
  tell_dependents({ entry }, at, retention)
end
write_counts()
return 1
