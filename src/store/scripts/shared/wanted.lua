-- The kinds of events that supervisors want for notifications.

local wanted

-- Returns them as a set; nil if no supervisor wants any.
local function wanted_kinds(at)
  if wanted == nil then
    wanted = false
    -- An access list of an older version does not permit the key.
    local found = redis.pcall('HGETALL', NOTIFY_WANTED)
    for place = 1, #found, 2 do
      if (tonumber(found[place + 1]) or 0) * 1000 > at then
        wanted = wanted or {}
        wanted[found[place]] = true
      end
    end
  end
  return wanted or nil
end
