-- Writes the status of jobs once more, as it is. So the connection that calls this has written after all that
-- was written of them, and may ask Redis whether that has arrived.
--
-- ARGV: 1... ids of jobs
-- returns the ids of those that do not exist

local gone = {}
for _, id in ipairs(ARGV) do
  -- A write that takes no memory lets the script write although Redis has reached its maxmemory.
  redis.pcall('HDEL', JOB .. id, '')
  local status = redis.pcall('HGET', JOB .. id, 'status')
  if type(status) == 'string' then
    redis.call('HSET', JOB .. id, 'status', status)
  else
    gone[#gone + 1] = id
  end
end
return gone
