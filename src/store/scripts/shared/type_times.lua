-- The times that supervisors want for jobs of a script type without a time of their own.

local type_time, give_type_time
do
  local type_times = { expect_within = {}, slow_after = {} }

  -- Returns such a time of a type, in seconds; nil if it has none. An access list of an older version does not permit the key.
  function type_time(name, script_type)
    local known = type_times[name]
    script_type = script_type or ''
    if known[script_type] == nil then
      local text = redis.pcall('HGET', TYPE_TIMES, name .. ':' .. script_type)
      -- Another text would make the job invalid.
      known[script_type] = type(text) == 'string' and string.find(text, '^%d+%.?%d*$') and text or false
    end
    return known[script_type] or nil
  end

  -- Gives a job this time, unless it has one.
  function give_type_time(id, name, script_type)
    local text = type_time(name, script_type)
    if text and redis.pcall('HEXISTS', JOB .. id, name) == 0 then redis.call('HSET', JOB .. id, name, text) end
  end
end
