-- Reads the outputs of the prerequisites of jobs.
--
-- ARGV: 1 limit on the bytes of outputs of one job  2 number of jobs, then for each: number of
--       ids, these
-- returns for each job a list with the output of each prerequisite, false for one that did not
--         finish or is gone; or an empty list if they exceed the limit. If the answer gets too
--         long it ends early: call again for the other jobs
-- needs: job

local bytes_max = tonumber(ARGV[1])
local inputs, bytes = {}, 0
local next_arg = 3
for number = 1, tonumber(ARGV[2]) do
  local ids = tonumber(ARGV[next_arg])
  local own, own_bytes = {}, 0
  for i = next_arg + 1, next_arg + ids do
    local key = JOB .. ARGV[i]
    local size = redis.pcall('HSTRLEN', key, 'output')
    own_bytes = own_bytes + (type(size) == 'number' and size or 0)
    if own_bytes > bytes_max then break end
    local f = read(ARGV[i], 'status', 'output')
    own[#own + 1] = f[1] == 'finished' and (f[2] or '') or false
  end
  next_arg = next_arg + 1 + ids
  if own_bytes > bytes_max then own, own_bytes = {}, 0 end
  if number > 1 and bytes + own_bytes > bytes_max then break end
  bytes = bytes + own_bytes
  inputs[number] = own
end
return inputs
