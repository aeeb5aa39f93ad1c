-- The one comparison of the rights of a caller with a job: the job that has the id at this time.
-- needs: time names job

local rights_of, rights_of_submitter, may_change_graph, allows, visible_id
do
  local function is_among(allowed, value)
    if allowed == nil then return true end
    -- Another program may have written anything there.
    if type(allowed) ~= 'table' then return false end
    for _, one in ipairs(allowed) do
      if one == value then return true end
    end
    return false
  end

  local decoded = { [''] = {} }

  function rights_of(text)
    if type(text) == 'table' then return text end
    decoded[text] = decoded[text] or cjson.decode(text)
    return decoded[text]
  end

  -- Returns the rights of a script, by the fields of its job: to the jobs of its caller, or of the token that submitted it
  -- for this caller and may not read, within the bounds of the token.
  function rights_of_submitter(caller_id, bounds)
    local names = json_table(present(bounds) or '{}') or { types = {} }
    return { caller = { name = present(names.sees) or caller_id or '', bounds = names } }
  end

  -- Tells if a caller may change the graph or batch that has an id now: its own, or any if it may change all jobs.
  function may_change_graph(caller, graph)
    return not caller or redis.call('HGET', GRAPH .. graph, 'caller') == caller.name
      or caller.changes_all and next(caller.bounds) == nil
  end

  -- Tells if rights, as `JobRights` writes them, allow to `see` or to `change` the job that has an id now. There is none
  -- that they allow if no job has the id, or a later one than the job that was checked before.
  function allows(rights, verb, id)
    if rights == '' then return true end
    local of = rights_of(rights)
    local f = read(id, 'caller_id', 'script_type', 'group', 'instance', 'context_id', 'graph_id', 'created_at')
    if of.graph and (f[6] ~= of.graph or verb == 'change' and not may_change_graph(of.caller, of.graph)) then return false end
    local created = of.pinned and of.pinned.id == id and microseconds(f[7]) or 0
    -- Foreign programs may write other times, or none.
    if created ~= 0 and created ~= of.pinned.created then return false end
    local caller = of.caller
    if not caller then return true end
    local bounds, is_own = caller.bounds, (f[1] or '') == caller.name
    local is_of_all = verb == 'see' and caller.sees_all or verb == 'change' and caller.changes_all
    return (is_own or is_of_all)
      and is_among(bounds.types, string.lower(f[2] or ''))
      and is_among(bounds.groups, present(f[3]) or present(f[4]) and 'default')
      and (is_own or is_among(bounds.callers, f[1] or ''))
      and is_among(bounds.contexts, f[5] or '')
  end

  -- Returns the id of a job that stands in the way of a caller, such as the holder of a unique key: '' if it may not see the
  -- job. That may be of any graph.
  function visible_id(rights, id)
    return allows({ caller = rights_of(rights or '').caller }, 'see', id) and id or ''
  end
end
