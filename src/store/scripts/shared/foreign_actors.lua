-- Live actors of foreign programs.
-- needs: wrong_type names

-- Returns the live actors of a type, or of a group of it, that are known, each as
-- TYPE:GROUP:INSTANCE.
local function foreign_actors_of(script_type, only_group)
  local live = {}
  for _, actor in ipairs(redis.call('ZRANGE', FOREIGN_ACTORS, 0, -1)) do
    local own, group = string.match(actor, '^([^:]+):([^:]+)')
    if own == script_type and (not only_group or group == only_group) then
      local presence = json_table(redis.pcall('GET', PRESENCE .. actor))
      -- An actor of Hero may have taken the name since.
      if presence and not presence.boot_id then live[#live + 1] = actor end
    end
  end
  return live
end
