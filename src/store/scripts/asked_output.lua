-- Reads the output of a job for the script of a running job that may have it: one that this job waits for, one of
-- its graph and its caller, or one of its children.
--
-- ARGV: 1 boot  2 id of the running job  3 time of the claim in us  4 the most bytes of an output
--       5 the name that its script asks for  6 the job's graph, or ''  7 its caller  8 a time, or '': jobs that it waits
--       for were created before it  9 the rights of the running job to others, or ''  then for each job that may have the
--       name: its id, and '1' if the running job waits for it
-- returns a word, and what it needs:
--       'lost' | 'stranger' | 'gone', id | 'finished', id, output | 'apart', id   the output has a key of its own
--       'large', id, bytes | 'error', id, error | 'unended', id, state
-- needs: job later_owner
-- rarely: rights

-- The jobs of a graph that are looked at for a name.
local NAMED_MAX = 1000
local boot, asking, graph = ARGV[1], ARGV[2], ARGV[6]
local score = tonumber(redis.call('ZSCORE', RUNNING .. boot, asking) or nil)
if not score or score > tonumber(ARGV[3]) then return { 'lost' } end
local children = read(asking, 'children')[1] or ''

-- A job that a deleted graph left, or its callback, is of no later graph with its id.
local is_of_graph = graph ~= '' and redis.call('ZSCORE', GRAPH_JOBS .. graph, asking)
if graph ~= '' and not is_of_graph then
  local own = read(asking, 'graph_callback', 'created_at')
  is_of_graph = own[1] and (redis.call('HGET', GRAPH .. graph, 'created_at') or '~') <= (own[2] or '')
end

local function told(id, f)
  if f[1] == 'error' then return { 'error', id, f[6] or '' } end
  if f[1] ~= 'finished' then return { 'unended', id, f[1] } end
  local size = redis.call('HSTRLEN', JOB .. id, 'output')
  if size > tonumber(ARGV[4]) then return { 'large', id, tostring(size) } end
  local output = redis.call('HGET', JOB .. id, 'output')
  if not output and f[5] then return { 'apart', id } end
  return { 'finished', id, output or '' }
end

local function answer(id, is_awaited)
  local is_child = string.find(children, '"' .. id .. '"', 1, true)
  local is_related = is_of_graph and redis.call('ZSCORE', GRAPH_JOBS .. graph, id)
  if not (is_awaited or is_child or is_related) then return nil end
  local f = read(id, 'status', 'created_at', 'parent', 'graph_id', 'output_key', 'error', 'caller_id')
  if not f[1] or ARGV[9] ~= '' and not rarely().allows(ARGV[9], 'see', id) then return { 'gone', id } end
  if is_awaited then
    return is_later_owner(f[2], ARGV[8]) and { 'gone', id } or told(id, f)
  end
  if is_child then return f[3] == asking and told(id, f) or { 'gone', id } end
  -- The jobs of another caller in the same graph are not this job's.
  if f[4] == graph and (f[7] or '') == ARGV[7] then return told(id, f) end
  return nil
end

for place = 10, #ARGV, 2 do
  local found = answer(ARGV[place], ARGV[place + 1] == '1')
  if found then return found end
end
if is_of_graph then
  for _, id in ipairs(redis.call('ZRANGE', GRAPH_JOBS .. graph, 0, NAMED_MAX - 1)) do
    if read(id, 'name')[1] == ARGV[5] then
      local found = answer(id, false)
      if found then return found end
    end
  end
end
return { 'stranger' }
