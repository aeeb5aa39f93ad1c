-- Counters per script type, written once, at the end of a script.

local counts = {}
local function count(script_type, what, number)
  local of_type = counts[script_type]
  if of_type then
    of_type[what] = (of_type[what] or 0) + (number or 1)
  else
    counts[script_type] = { [what] = number or 1 }
  end
end

local function write_counts()
  for script_type, of_type in pairs(counts) do
    for what, number in pairs(of_type) do
      redis.pcall('HINCRBY', STATS .. script_type, what, number)
    end
  end
end
