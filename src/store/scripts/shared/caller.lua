-- The rights of the caller of a script, its last argument: '' without limits, as the daemon has them.
-- needs: wrong_type rights

local RIGHTS = string.match(table.remove(ARGV) or '', '^rights(.*)$')
if not RIGHTS then error('called without the rights of its caller') end

-- Tells if the caller may `see` or `change` the job that has an id now.
local function caller_may(verb, id)
  return allows(RIGHTS, verb, id)
end

local function caller_may_see(id)
  return allows(RIGHTS, 'see', id)
end

-- Tells if the caller may change the graph or batch that has an id now: its own, or any if it may change all jobs.
local function caller_may_change_graph(graph)
  local caller = rights_of(RIGHTS).caller
  return not caller or redis.call('HGET', GRAPH .. graph, 'caller') == caller.name
    or caller.changes_all and next(caller.bounds) == nil
end
