-- Submits a child of a running job, while the job is in the boot's running set since the claim of this attempt.
-- A child that the job has submitted before is not submitted again, even if it is gone.
--
-- ARGV: 1 boot  2 id of the job  3 time of the claim in us  4 the most children of a job
--       5 the most generations below a job without a parent  6 number of ids that the child waits for, then these,
--       which must be children of the same job  then the arguments of `submit` for this one child
-- returns two strings:
--       'submitted', '' | 'known', '' | 'lost', '' | 'stopped', '' | 'many', '' | 'deep', ''
--       'stranger', id   it waits for this job, which is no child of the same job
--       what `submit` returns for a job that it refused
-- needs: wrong_type time job submit_jobs
-- rarely: rights

local boot, parent = ARGV[1], ARGV[2]
local score = tonumber(redis.call('ZSCORE', RUNNING .. boot, parent) or nil)
if not score or score > tonumber(ARGV[3]) then return { 'lost', '' } end

local others = tonumber(ARGV[6])
-- The arguments of `submit` begin with four of its own, then the id.
local first = 7 + others
local id = ARGV[first + 4]
local f = read(parent, 'children', 'generation', 'stopped_by', 'caller_id', 'bounds')
local children = f[1] and string.find(f[1], '^%[".*"%]$') and f[1] or '[]'
local function is_child(of)
  return string.find(children, '"' .. of .. '"', 1, true)
end

if is_child(id) then return { 'known', '' } end
-- A stop of the job and its children must find all of them.
if f[3] then return { 'stopped', '' } end
local _, quotes = string.gsub(children, '"', '')
if quotes / 2 >= tonumber(ARGV[4]) then return { 'many', '' } end
local generation = (tonumber(f[2] or '') or 0) + 1
if generation > tonumber(ARGV[5]) then return { 'deep', '' } end
for place = 7, first - 1 do
  if not is_child(ARGV[place]) then return { 'stranger', ARGV[place] } end
end

local result = submit_jobs({ unpack(ARGV, first) })
local is_refused = result[1] == 'exists' or result[1] == 'duplicate'
  or result[1] == 'unknown_prerequisite' or result[1] == 'broken_queue'
if result[1] == 'duplicate' then result[2] = rarely().visible_id(rarely().rights_of_submitter(f[4], f[5]), result[2]) end
if is_refused then return { result[1], result[2] } end
local before = children == '[]' and '[' or string.sub(children, 1, -2) .. ','
redis.call('HSET', JOB .. parent, 'children', before .. '"' .. id .. '"]')
redis.call('HSET', JOB .. id, 'parent', parent, 'generation', integer(generation))
return { 'submitted', '' }
