-- Deletes a job that does not run, with all its keys. Dependents that wait for it fail.
--
-- ARGV: 1 id  2 retention of dependents that fail  3 the rights of the caller
-- returns 'deleted', 'running' or 'missing': there is none that the caller may change
-- needs: wrong_type caller time names job counters events leave ending dependents graph_end

local id, retention = ARGV[1], ARGV[2]
if not caller_may('change', id) then return 'missing' end
local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'boot_id',
  'unique_key', 'dependents', 'actor', 'graph_id', 'output_key', 'where')
if not f[1] and redis.call('EXISTS', JOB .. id) == 0 then return 'missing' end
local status = f[1] or 'created'
if status == 'started' then return 'running' end

local script_type = type_of_job(f[2], f[9])
leave_index(id, status, script_type, { group = f[3], instance = f[4], priority = f[5], boot_id = f[6], where = f[12] })
release_unique(id, f[7])
if status == 'error' then
  redis.pcall('LREM', DEAD .. script_type, 1, id)
end
log_event(id, 'deleted', script_type)
redis.call('DEL', JOB .. id, PENDING .. id, LOG .. id, FILES .. id, REPLY .. id)
-- An access list of an older version does not permit the key.
if f[11] then redis.pcall('DEL', OUTPUT .. id) end
redis.pcall('DEL', AWAITING .. id)
redis.pcall('ZREM', AWAITED, id)
redis.pcall('ZREM', EXPIRING, id)
redis.pcall('ZREM', EXPECTED, 'late ' .. id, 'slow ' .. id)
-- An ended job stays counted as before; any other counts as stopped, as it never ends.
if present(f[10]) and status ~= 'finished' and status ~= 'error' then
  note_in_graph(f[10], id, 'error', 'stopped', now_us(), 0)
end
if present(f[8]) then
  -- The dependents of a finished job have been told, unless a foreign actor has just ended it.
  local outcome = status == 'finished' and 'finished' or 'error'
  tell_dependents({ { id = id, status = outcome, dependents = f[8] } }, now_us(), retention)
end
write_counts()
return 'deleted'
