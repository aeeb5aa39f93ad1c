-- Says which contents of the folder no job names. Forgets jobs that are gone, and the files of jobs that
-- ended longer ago than files stay, unless other jobs may need them.
--
-- ARGV: 1 key of the contents  2 time in s that files stay after the end of their job, 0 for as long as it
--       3... hashes
-- returns a list: for each hash 1 if no job names it, else 0
-- needs: time names job awaited

local contents, retention_us = ARGV[1], ARGV[2] * 1000000
local now = now_us()

-- Whether the files of a job are kept on.
local function keeps(id)
  local files = FILES .. id
  if redis.call('EXISTS', files) == 0 then return false end
  if retention_us == 0 then return true end
  local f = redis.call('HMGET', JOB .. id, 'status', 'finished_at')
  if f[1] ~= 'finished' and f[1] ~= 'error' then return true end
  if microseconds(f[2]) + retention_us > now or is_awaited(id, now) then return true end
  for _, field in ipairs(redis.call('HKEYS', files)) do
    if string.sub(field, 1, 2) == 'a:' then redis.call('HDEL', files, field) end
  end
  return false
end

local answer = {}
for number = 3, #ARGV do
  local begin, len_max = ARGV[number] .. ':', 100
  local uses = redis.call('ZRANGEBYLEX', contents, '[' .. begin, '(' .. ARGV[number] .. ';', 'LIMIT', 0, len_max)
  local is_used = false
  for _, use in ipairs(uses) do
    is_used = keeps(string.sub(use, #begin + 1))
    if is_used then break end
    redis.call('ZREM', contents, use)
  end
  -- After this many there may be more, which are looked at the next time.
  answer[#answer + 1] = (is_used or #uses == len_max) and 0 or 1
end
return answer
