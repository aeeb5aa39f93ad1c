-- Makes jobs wait for others.
-- needs: prerequisites

-- Makes a job wait for prerequisites, given as entries of its pending set.
local function add_dependent(id, pending)
  -- Registers a job as dependent of a prerequisite.
  local function note_dependent(prerequisite, id)
    local key = JOB .. prerequisite
    if redis.call('HSTRLEN', key, 'dependents') >= DEPENDENTS_FIELD_BYTES then
      redis.call('RPUSH', DEPENDENTS .. prerequisite, id)
      redis.pcall('HINCRBY', key, 'dependents_more', 1)
      return
    end
    local known = redis.call('HGET', key, 'dependents')
    local entry = '"' .. id .. '"'
    local list = '[' .. entry .. ']'
    if known and string.match(known, '^%[".*"%]$') then
      list = string.sub(known, 1, -2) .. ',' .. entry .. ']'
    end
    redis.call('HSET', key, 'dependents', list)
  end

  -- Lua hands on no more than some thousand values at once.
  for first = 1, #pending, 1000 do
    redis.call('SADD', PENDING .. id, unpack(pending, first, math.min(first + 999, #pending)))
  end
  for _, entry in ipairs(pending) do note_dependent(prerequisite_of(entry), id) end
end
