-- Functions of sweeps, and of other scripts that keep accepted jobs going.

-- Types that one sweep looks at; of more it takes a random choice.
local TYPES_PER_STEP = 200

local function some_types()
  return redis.call('SRANDMEMBER', TYPES, TYPES_PER_STEP)
end

-- Lets the script write although Redis has reached its maxmemory. Redis rejects a script only at its
-- first write that takes memory; a write that takes none lifts the check. A boot that could not
-- renew its lease would lose its jobs.
local function despite_full_memory()
  redis.pcall('ZREM', BOOTS, '')
end
