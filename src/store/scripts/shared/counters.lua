-- Counters per script type, written at the end of each step of a script.
-- needs: wrong_type

local counts = {}
local function count(script_type, what, number)
  local of_type = counts[script_type] or {}
  counts[script_type] = of_type
  of_type[what] = (of_type[what] or 0) + (number or 1)
end

local function write_counts()
  for script_type, of_type in pairs(counts) do
    for what, number in pairs(of_type) do
      redis.call('HINCRBY', STATS .. script_type, what, number)
    end
  end
  -- A script that makes two steps of this kind counts none twice.
  counts = {}
end
