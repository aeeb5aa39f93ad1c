-- Reads the fields of a job.

-- Foreign programs may write a status in capitals.
local function canonical_status(status)
  if not status or status == 'dispatched' or not string.find(status, '%u') then return status end
  local states = { created = true, waiting_for_prerequisites = true, scheduled = true,
    dispatched = true, started = true, finished = true, error = true }
  local lower = string.lower(status)
  return states[lower] and lower or status
end

-- Returns fields of a job, none if the key is no hash: a script that stopped half way would leave
-- its writes done. If the first field is `status`, its canonical spelling is written back.
local function read(id, ...)
  local fields = redis.pcall('HMGET', JOB .. id, ...)
  if fields.err then return {} end
  if (...) == 'status' then
    local status = canonical_status(fields[1])
    if status ~= fields[1] then
      redis.pcall('HSET', JOB .. id, 'status', status)
      fields[1] = status
    end
  end
  return fields
end
