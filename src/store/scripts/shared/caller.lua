-- The rights of the caller of a script, its last argument: '' without limits, as the daemon has them.
-- needs: wrong_type names job rights

local RIGHTS = string.match(table.remove(ARGV) or '', '^rights(.*)$')
if not RIGHTS then error('called without the rights of its caller') end

-- Tells if the caller may `see` or `change` the job that has an id now.
local function caller_may(verb, id)
  return allows(RIGHTS, verb, id)
end

local function caller_may_see(id)
  return allows(RIGHTS, 'see', id)
end

-- Keeps a job that the caller corrects within the bounds of the caller, besides those that it has: its children stay within both.
local function narrow_bounds(id)
  local caller = rights_of(RIGHTS).caller
  if not caller or next(caller.bounds) == nil then return end
  local both = json_table(read(id, 'bounds')[1]) or {}
  for bound, names in pairs(caller.bounds) do
    local allowed, of_both = {}, {}
    for _, name in ipairs(names) do allowed[name] = true end
    for _, name in ipairs(both[bound] or names) do
      if allowed[name] then of_both[#of_both + 1] = name end
    end
    -- What the caller may change is within its bounds.
    both[bound] = of_both[1] and of_both or names
  end
  redis.call('HSET', JOB .. id, 'bounds', cjson.encode(both))
end

local function caller_may_change_graph(graph)
  return may_change_graph(rights_of(RIGHTS).caller, graph)
end
