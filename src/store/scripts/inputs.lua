-- Reads what the prerequisites of jobs have left.
--
-- ARGV: 1 bytes that those of one job may have together  2 how many jobs, then for each: how many
--       ids, these
-- returns for each job a list of what each of its prerequisites left, false for one that did not
--         finish or is gone; or an empty list if that is more than a job may have. For fewer jobs
--         than were asked for, if the answer becomes too long: ask again for the rest
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
