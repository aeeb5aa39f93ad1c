-- Reads outputs of finished jobs.
--
-- ARGV: 1 limit on the bytes of one output, then for each its id, a time or '': a job of this id that was created later is
--       another one, and the rights of the job that gets it, or '': beyond them it is gone
-- returns for each an array of the output; its size if it exceeds the limit; -1 if it is long, or has a key of its own:
--         the caller reads it in pieces; false if the job failed; -2 if it is gone; or -3 if it has not ended; of 1 if the job left
--         files, else 0; and of its name or ''. If the answer gets too long it ends early: call again for the other jobs
-- needs: job later_owner
-- rarely: rights

local BYTES_PER_STEP = 524288
local output_max = tonumber(ARGV[1])
local outputs, bytes = {}, 0
for number = 2, #ARGV, 3 do
  local size = redis.pcall('HSTRLEN', JOB .. ARGV[number], 'output')
  size = type(size) == 'number' and size or 0
  local is_too_large, is_long = size > output_max, size > BYTES_PER_STEP
  if not is_too_large and not is_long then bytes = bytes + size end
  if bytes > BYTES_PER_STEP and number > 2 then break end
  local f = (is_too_large or is_long) and read(ARGV[number], 'status', 'output_files', 'output_key', 'created_at', 'name')
    or read(ARGV[number], 'status', 'output_files', 'output_key', 'created_at', 'name', 'output')
  local output = is_too_large and size or f[6] or (is_long or f[3]) and -1 or ''
  local is_seen = ARGV[number + 2] == '' or rarely().allows(ARGV[number + 2], 'see', ARGV[number])
  if not f[1] or is_later_owner(f[4], ARGV[number + 1]) or not is_seen then
    outputs[#outputs + 1] = { -2, 0, '' }
  elseif f[1] == 'error' then
    outputs[#outputs + 1] = { false, 0, f[5] or '' }
  elseif f[1] ~= 'finished' then
    outputs[#outputs + 1] = { -3, 0, f[5] or '' }
  else
    outputs[#outputs + 1] = { output, f[2] and 1 or 0, f[5] or '' }
  end
end
return outputs
