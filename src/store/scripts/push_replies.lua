-- Pushes the replies that `finish` has held back, as the ends of their jobs are confirmed now.
--
-- ARGV: 1... ids of jobs
-- returns the number of replies

local ttl_s = '60'
local pushed = 0
for _, id in ipairs(ARGV) do
  local held = OUTPUT .. id .. ':held'
  if redis.pcall('EXISTS', held) == 1 then
    -- This wakes those who wait, as a push does.
    redis.call('RENAME', held, REPLY .. id)
    redis.call('EXPIRE', REPLY .. id, ttl_s)
    pushed = pushed + 1
  end
end
return pushed
