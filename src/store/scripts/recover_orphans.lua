-- Removes entries of jobs that are gone, or in another state, from the indexes that nothing else
-- walks through, in a window that moves with every call.
--
-- ARGV: 1 limit on entries per index
-- returns how many were removed
-- needs: wrong_type time job sweep index

local window = tonumber(ARGV[1])
local LOOKED_MAX = 1000
local removed, looked, at = 0, 0, now_us()
despite_full_memory()
for _, script_type in ipairs(some_types(at)) do
  if looked >= LOOKED_MAX then break end
  for _, status in ipairs({ 'created', 'waiting_for_prerequisites' }) do
    local index = index_of(status, script_type)
    local place = status .. ' ' .. script_type
    local from = tonumber(redis.call('HGET', MARKS, place) or '') or 0
    local ids = redis.call('ZRANGE', index, from, from + window - 1)
    local kept = 0
    looked = looked + #ids
    for _, id in ipairs(ids) do
      if read(id, 'status')[1] == status then
        kept = kept + 1
      else
        redis.call('ZREM', index, id)
        if redis.call('EXISTS', JOB .. id) == 0 then redis.call('DEL', PENDING .. id, DEPENDENTS .. id) end
        removed = removed + 1
      end
    end
    if #ids < window then
      redis.call('HDEL', MARKS, place)
    else
      redis.call('HSET', MARKS, place, from + kept)
    end
  end
end
return removed
