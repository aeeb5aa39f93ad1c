-- Live actors of foreign programs.
-- needs: wrong_type names

-- Returns the live actors of a type that are known, each as TYPE:GROUP:INSTANCE.
local function foreign_actors_of(script_type)
  local live = {}
  for _, actor in ipairs(redis.call('ZRANGE', FOREIGN_ACTORS, 0, -1)) do
    if string.match(actor, '^[^:]+') == script_type then
      local text = redis.pcall('GET', PRESENCE .. actor)
      local ok, presence = pcall(cjson.decode, type(text) == 'string' and text or '')
      -- An actor of Hero may have taken the name since.
      if ok and type(presence) == 'table' and not presence.boot_id then live[#live + 1] = actor end
    end
  end
  return live
end
