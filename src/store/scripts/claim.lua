-- Takes jobs for one actor and makes them its boot's own.
--
-- KEYS: the work lists of the actor, first come first
-- ARGV: 1 boot  2 actor, TYPE:GROUP:INSTANCE  3 its script type
--       4 how many jobs at the most, popped ones included
--       5 bytes that one hash may have
--       6 how many ids were popped before, then for each: its work list, the id
--       last: the limits of the configuration as JSON, or '' if it has none
-- returns { jobs, skipped, broken, more, fenced, paused }
--       jobs     for each: { id, work list, attempt, fields and values | {} if too large }
--       skipped  { how many, a few of them: id, why, … }
--       broken   { work list, error, … } of lists that cannot be read
--       more     1 if ids were skipped until the step's share was used up: ask again
--       fenced   1 if the boot holds no lease: what it claimed now nobody would ever recover, so it
--                gets nothing, and what strangers pushed and it popped goes back
--       paused   the work lists of queues that are paused: nothing was taken from them, and what
--                was popped from one went back to its front
-- seldom: limits_in_claim, legacy_in_claim, withdraw, note_foreign_start, is_ours, moving,
--         skip, look_for_paused, leave_to_old_worker

local boot, actor, own_type = ARGV[1], ARGV[2], ARGV[3]
local wanted, size_max = tonumber(ARGV[4]), tonumber(ARGV[5])
local last_popped = 5 + 2 * ARGV[6]
local POPS_PER_STEP = 1000

local at = now_us()
local when = rfc3339(at)
local jobs, skipped, broken = {}, { 0 }, {}
local claims, taken = {}, {}
local unready = {}

if not may_own(boot) then
  for i = last_popped, 7, -2 do
    -- What has a ready entry is found by the sweep for lost pops, perhaps has been already.
    if not redis.call('ZSCORE', READY .. queue_of_list(ARGV[i]), ARGV[i + 1]) then
      redis.pcall('LPUSH', ARGV[i], ARGV[i + 1])
    end
  end
  return { {}, { 0 }, {}, 0, 1, {} }
end

-- The lists to leave alone. One cheap question as long as nothing is paused.
local paused, is_paused = {}, {}
local function look_for_paused(paused, is_paused, last_popped)
  local lists, queues = { unpack(KEYS) }, {}
  for i = 7, last_popped, 2 do lists[#lists + 1] = ARGV[i] end
  if #lists == 0 then return end
  for place, list in ipairs(lists) do queues[place] = queue_of_list(list) end
  for place, is in ipairs(redis.call('SMISMEMBER', PAUSED, unpack(queues))) do
    if is == 1 and not is_paused[lists[place]] then
      is_paused[lists[place]] = true
      paused[#paused + 1] = lists[place]
    end
  end
end
local some_are_paused = redis.call('EXISTS', PAUSED) == 1
if some_are_paused then look_for_paused(paused, is_paused, last_popped) end

local function skip(skipped, id, why)
  local shown_max = 8
  skipped[1] = skipped[1] + 1
  if #skipped <= 2 * shown_max then
    skipped[#skipped + 1] = string.sub(id, 1, 64)
    skipped[#skipped + 1] = why
  end
end

-- An old worker has popped the copy of the job, and will say that it has started it. The entry in
-- the ready index stays: the supervisor notes what the worker does, or puts the job back.
local function leave_to_old_worker(id, list, legacy, at, skipped)
  local queue = queue_of_list(list)
  if not legacy_queue(list) and not redis.call('ZSCORE', READY .. queue, id) then
    local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
    register(QUEUES, queue)
    redis.call('ZADD', READY .. queue, integer(tonumber(first[2] or at) - 1), id)
  end
  seen(legacy, 'popped_at', at)
  skip(skipped, id, 'an old worker has taken it')
end

local function unready_later(id, list)
  local ids = unready[list]
  if not ids then
    ids = {}
    unready[list] = ids
  end
  ids[#ids + 1] = id
end

local limits_text = ARGV[last_popped + 2]
local has_limits = present(limits_text) and limits_text ~= '[]'
local limiting, handing_over

local function take(id, list)
  if not legal_id(id) then return skip(skipped, id, 'no legal id') end
  local hash = redis.pcall('HGETALL', JOB .. id)
  local old
  if LEGACY then old = legacy_queue(list) end
  if hash.err or #hash == 0 then
    if not old then unready_later(id, list) end
    return skip(skipped, id, hash.err and 'its key is no hash' or 'no such job')
  end
  local status, attempt, size, typed, boot_id, legacy = nil, 0, 0, false, nil, nil
  local is_limited = has_limits
  for i = 1, #hash, 2 do
    local name, value = hash[i], hash[i + 1]
    size = size + #name + #value
    if name == 'status' then
      status = spelled(value)
    elseif name == 'attempt' then
      attempt = tonumber(value) or 0
    elseif name == 'script_type' then
      typed = value ~= ''
    elseif name == 'boot_id' then
      boot_id = value
    elseif name == 'legacy' then
      legacy = value
    elseif name == 'concurrent' then
      is_limited = is_limited or value == 'false' or value == '0'
    end
  end
  -- Older programs may have left it out.
  if old then status = status or 'dispatched' end
  if present(legacy) and status == 'dispatched' and list ~= legacy and not withdraw(id, legacy) then
    return leave_to_old_worker(id, list, legacy, at, skipped)
  end
  -- A job that older programs may take as well is theirs to run when they like.
  local held, limited = false, nil
  if is_limited and status == 'dispatched' and not old and not present(legacy) then
    limiting = limiting or limits_in_claim({
      type = own_type, actor = actor, at = at, jobs = jobs,
      limits = has_limits and cjson.decode(limits_text) or {} })
    held, limited = limiting.is_held(id, hash, list)
  end
  if held then
    if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
    return
  end
  -- By its ready entry alone the supervisor notices what a foreign actor has ended.
  if status ~= 'finished' and status ~= 'error' and not old then unready_later(id, list) end
  if status ~= 'dispatched' then
    -- A second copy of what a foreign actor has taken: it must stay in an index.
    if status == 'started' and not taken[id] and not is_ours(id, boot_id) then
      note_foreign_start(id, own_type, at)
    end
    return skip(skipped, id, 'its status is ' .. string.sub(status or 'missing', 1, 32))
  end
  if old then
    handing_over = handing_over or legacy_in_claim({
      type = own_type, at = at, when = when, skipped = skipped, some_are_paused = some_are_paused })
    list = handing_over.take_over(id, hash, legacy, old)
    if not list then return end
  end
  attempt = attempt + 1
  if EVENTS_ON then moving(id, 'started', own_type, actor) end
  redis.call('HSET', JOB .. id, 'status', 'started', 'started_at', when, 'updated_at', when,
    'actor', actor, 'boot_id', boot, 'attempt', attempt)
  -- From here on the job has the type of whoever took it.
  if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
  if limited then limiting.take_places(id, attempt, limited) end
  claims[#claims + 1] = integer(at + #jobs)
  claims[#claims + 1] = id
  taken[id] = true
  jobs[#jobs + 1] = { id, list, attempt, size <= size_max and hash or {} }
end

for i = last_popped, 7, -2 do
  if is_paused[ARGV[i]] then redis.pcall('LPUSH', ARGV[i], ARGV[i + 1]) end
end
for i = 7, last_popped, 2 do
  if not is_paused[ARGV[i]] then take(ARGV[i + 1], ARGV[i]) end
end

-- As a rule they are all empty for an actor that has just been woken by its pop.
local pops = 0
local lists = #jobs < wanted and #KEYS > 0 and redis.call('EXISTS', unpack(KEYS)) > 0 and KEYS or {}
for _, list in ipairs(lists) do
  while not is_paused[list] and #jobs < wanted and pops < POPS_PER_STEP do
    local ids = redis.pcall('LPOP', list, math.min(wanted - #jobs, POPS_PER_STEP - pops))
    if not ids then break end
    if ids.err then
      broken[#broken + 1] = list
      broken[#broken + 1] = ids.err
      break
    end
    pops = pops + #ids
    for _, id in ipairs(ids) do take(id, list) end
  end
end

if #claims > 0 then
  redis.call('ZADD', RUNNING .. boot, unpack(claims))
  count(own_type, 'started', #jobs)
end
for list, ids in pairs(unready) do
  redis.pcall('ZREM', READY .. queue_of_list(list), unpack(ids))
end
if skipped[1] > 0 then count(own_type, 'skipped', skipped[1]) end
write_counts()
return { jobs, skipped, broken, (#jobs < wanted and pops >= POPS_PER_STEP) and 1 or 0, 0, paused }
