-- Functions of sweeps, and of other scripts that keep accepted jobs going.
-- needs: wrong_type time

-- Types that one sweep looks at; of more it takes a random choice.
local TYPES_PER_STEP = 200

-- With a time, the list begins at another type each time, for a step whose share ends before it.
local function some_types(at)
  local types = redis.call('SRANDMEMBER', TYPES, TYPES_PER_STEP)
  if at and #types > 1 then
    local turned, turn = {}, at % #types
    for place = 1, #types do turned[place] = types[(place + turn - 1) % #types + 1] end
    types = turned
  end
  if not has_wrong_type[TYPES] then return types end
  -- The lists of the actors.
  local known = {}
  for _, actor in ipairs(redis.call('ZRANGE', ACTORS, 0, TYPES_PER_STEP - 1)) do
    local script_type = string.match(actor, '^[^:]+')
    if not known[script_type] then types[#types + 1] = script_type end
    known[script_type] = true
  end
  return types
end

-- Returns the us until the first time of a sorted set; -1 if it has none.
local function us_until_first(key, at)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return first[2] and integer(math.max(tonumber(first[2]) - at, 0)) or -1
end

-- Lets the script write although Redis has reached its maxmemory. Redis rejects a script only at its
-- first write that takes memory; a write that takes none lifts the check. A boot that could not
-- renew its lease would lose its jobs.
local function despite_full_memory()
  redis.pcall('ZREM', BOOTS, '')
end
