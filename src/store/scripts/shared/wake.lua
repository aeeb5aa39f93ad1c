-- Wakes actors that wait for work. A wake list holds one token at most, which says no more than «look»: a
-- lost token costs a turn of the wait, never a job.

local woken = {}

-- Wakes one actor that waits for a queue, of any priority.
local function wake(queue)
  local list = WAKE .. string.gsub(queue, ':prio:%d$', '')
  if woken[list] then return end
  woken[list] = true
  -- An access list of an older version does not permit the key: then actors look once a turn.
  if redis.pcall('EXISTS', list) == 0 then redis.pcall('RPUSH', list, '1') end
end
