-- Submits children of a running job, all of them or none, while the job is in the boot's running set since the claim of this
-- attempt. A child that the job has submitted before is not submitted again, even if it is gone.
--
-- ARGV: 1 boot  2 id of the job  3 time of the claim in us  4 the most children of a job
--       5 the most generations below a job without a parent
--       then the arguments of `submit`, each child behind its prerequisites among them
--       last: the id of the graph that they become, with its fields and values, or ''
-- returns three strings, the last the number of the child, or '':
--       'submitted', '' | 'known', '' | 'lost', '' | 'stopped', '' | 'many', '' | 'deep', ''
--       'stranger', id   it waits for this job, which is no child of the same job
--       what `submit` returns for a job that it refused
-- needs: wrong_type time job submit_jobs reserved
-- rarely: rights unique graph_start

local boot, parent = ARGV[1], ARGV[2]
local score = tonumber(redis.call('ZSCORE', RUNNING .. boot, parent) or nil)
if not score or score > tonumber(ARGV[3]) then return { 'lost', '', '' } end

local f = read(parent, 'children', 'generation', 'stopped_by', 'caller_id', 'bounds')
local children = f[1] and string.find(f[1], '^%[".*"%]$') and f[1] or '[]'
local function is_child(of)
  return string.find(children, '"' .. of .. '"', 1, true)
end

local new, is_new, keys = {}, {}, {}
-- Calls a function with each prerequisite of a child that is no child of the list, until it returns something, which is returned.
-- The arguments of the child begin at the place `at`; the number of its fields and values stands at `fields`.
local function find_other(at, fields, found)
  for place = at + 9, fields - 1 do
    local other = string.match(ARGV[place], '^%??(.*)$')
    if not is_new[other] and found(other) then return other end
  end
end

-- Returns why a child is refused: a word and its detail; nil if it is not.
local function why_not(at, fields)
  local id, unique_key = ARGV[at], ARGV[at + 7]
  local stranger = find_other(at, fields, function(other) return not is_child(other) end)
  if stranger then return 'stranger', stranger end
  if is_taken(id) then return 'exists', '' end
  if unique_key ~= '' then
    local holder = rarely().holder_of(unique_key)
    if holder then return 'duplicate', rarely().visible_id(rarely().rights_of_submitter(f[4], f[5]), holder) end
    if keys[unique_key] then return 'duplicate', keys[unique_key] end
    keys[unique_key] = id
  end
  local unknown = find_other(at, fields, function(other) return not read(other, 'status')[1] end)
  if unknown then return 'unknown_prerequisite', unknown end
end

-- The arguments of `submit` begin with four of its own; the arguments of the new children follow.
local args = { ARGV[6], ARGV[7], 0, ARGV[9] }
local REFUSALS = { exists = true, duplicate = true, unknown_prerequisite = true, broken_queue = true }
local generation = (tonumber(f[2] or '') or 0) + 1
local _, quotes = string.gsub(children, '"', '')
local at = 10
for number = 1, tonumber(ARGV[8]) do
  local id, fields = ARGV[at], at + 9 + ARGV[at + 8]
  local last = fields + ARGV[fields]
  if not is_child(id) and not is_new[id] then
    -- A stop of the job and its children must find all of them.
    if f[3] then return { 'stopped', '', '' } end
    if quotes / 2 + #new >= tonumber(ARGV[4]) then return { 'many', '', '' } end
    if generation > tonumber(ARGV[5]) then return { 'deep', '', '' } end
    local why, detail = why_not(at, fields)
    if why then return { why, detail, integer(number) } end
    new[#new + 1], is_new[id] = id, true
    for place = at, last do args[#args + 1] = ARGV[place] end
  end
  at = last + 1
end
if #new == 0 then return { 'known', '', '' } end
local graph = ARGV[at]
if graph ~= '' and not rarely().open_graph(graph, ARGV, at + 1, now_us()) then return { 'exists', '', '' } end

args[3] = #new
local results, refused = submit_jobs(args), nil
for number, id in ipairs(new) do
  local code, detail = results[2 * number - 1], results[2 * number]
  -- A key of the wrong type refuses the jobs of its queue alone.
  if REFUSALS[code] then
    refused = refused or { code, detail, '' }
  else
    local before = children == '[]' and '[' or string.sub(children, 1, -2) .. ','
    children = before .. '"' .. id .. '"]'
    redis.call('HSET', JOB .. id, 'parent', parent, 'generation', integer(generation))
  end
end
if children ~= '[]' then redis.call('HSET', JOB .. parent, 'children', children) end
return refused or { 'submitted', '', '' }
