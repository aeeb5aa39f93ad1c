-- Looks which duties of supervisors have work, so that the others need not look themselves.
--
-- ARGV: none
-- returns { revision of the periodic jobs in Redis or '', us until the first scheduled job is due or -1, the
--           kinds of work }
-- needs: wrong_type time sweep index control

local types = some_types()
-- Each duty looks at a choice of the types of its own.
local is_choice = #types >= TYPES_PER_STEP
local of_types = { control = {}, scheduled = {}, foreign = {}, orphans = {} }
for place, name in ipairs(told_together(types)) do of_types.control[place] = CONTROL .. name end
for place, script_type in ipairs(types) do
  of_types.scheduled[place] = index_of('scheduled', script_type)
  of_types.foreign[place] = index_of('started', script_type)
  of_types.orphans[2 * place - 1] = index_of('created', script_type)
  of_types.orphans[2 * place] = index_of('waiting_for_prerequisites', script_type)
end
local keys_of = {
  { 'queues', { QUEUES, SLOW } },
  { 'limits', { LIMITS } },
  { 'unsettled', { SETTLING, COMMITTING, NOTES } },
  { 'objects', { OSIS_CONTEXTS, OSIS_UNDECLARED } },
  { 'wrong_types', { WRONG_TYPES } },
  { 'unindexed', { UNINDEXED } },
  { 'awaited', { AWAITED } },
  { 'expiring', { EXPIRING } },
  { 'expected', { EXPECTED } },
}
local is_by_time = { awaited = true, expiring = true, expected = true }
for kind, keys in pairs(of_types) do keys_of[#keys_of + 1] = { kind, keys, is_of_types = true } end

local all = {}
for _, of in ipairs(keys_of) do
  for _, key in ipairs(of[2]) do all[#all + 1] = key end
end
-- Without the permission to read a key, its work counts as there: so its duty looks itself.
local revision = redis.pcall('HGET', CRON_ADDED, '#')
if type(revision) ~= 'string' then revision = '' end
-- Most of the time no such key exists.
if not is_choice and redis.pcall('EXISTS', unpack(all)) == 0 then return { revision, -1, {} } end

-- Returns the us until the first job of these indexes is due.
local function first_due(indexes)
  local first
  for _, index in ipairs(indexes) do
    local found = redis.pcall('ZRANGE', index, 0, 0, 'WITHSCORES')
    local score = found.err and 0 or tonumber(found[2])
    if score and (not first or score < first) then first = score end
  end
  return first and math.max(first - now_us(), 0) or -1
end

local next_due, kinds = -1, {}
for _, of in ipairs(keys_of) do
  local kind, keys = of[1], of[2]
  local is_there = is_choice and of.is_of_types or #keys > 0 and redis.pcall('EXISTS', unpack(keys)) ~= 0
  if is_there and kind == 'scheduled' then
    next_due = is_choice and 0 or first_due(keys)
  elseif is_there and (not is_by_time[kind] or first_due(keys) == 0) then
    kinds[#kinds + 1] = kind
  end
end
return { revision, next_due, kinds }
