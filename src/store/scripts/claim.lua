-- Claims jobs for one actor: its boot owns them from then on. An id leaves its list here, and only if
-- it has a ready entry. Any other one was pushed by a program: it stays for `adopt`.
--
-- KEYS: the work lists of the actor, in order
-- ARGV: 1 boot  2 actor, TYPE:GROUP:INSTANCE  3 its script type
--       4 limit on the number of jobs
--       5 how many of them begin at once; the others are claimed ahead and wait for a thread
--       6 limit on the bytes of one hash
--       7 the limits of the configuration as JSON, or '' if it has none  8 the digest of those that LIMIT_RULES has by the
--         caller or key that they select by, '' for none
-- returns { jobs, skipped, broken, more, fenced, time, unadopted }
--       jobs       for each: { id, work list, attempt, time of its claim in us, fields and values | {} if
--                  too large }
--       skipped    { number, a few of them: id, reason, … }
--       broken     { work list, error, … } of lists that cannot be read
--       more       1 if the script met as many ids, jobs, held jobs or bytes as one step may: call again; 2 if the
--                  next job may not be claimed ahead; 3 if a fair limit has not seen all jobs of a list: call again, also
--                  for no job
--       fenced     1 if the boot holds no lease: nothing is claimed, as no sweep would recover it; 2 if LIMIT_RULES has no
--                  limits of this digest: nothing is claimed
--       time       of the claim, in us
--       unadopted  lists with ids that have no ready entry
-- needs: wrong_type time names routing job owner counters index events legacy wake type_times
-- rarely: foreign_start claim_limits claim_windows other_copies pauses expiring

local boot, actor, own_type = ARGV[1], ARGV[2], ARGV[3]
local wanted, begins, size_max, limits_text = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local IDS_PER_STEP, JOBS_PER_STEP, HELD_PER_STEP, BYTES_PER_STEP = 1000, 128, 100, 524288

-- The times of the claims are even, and odd for jobs that are claimed ahead: by this the recovery of a
-- dead boot knows that they may not have begun.
local at = now_us()
at = at - at % 2
local when = rfc3339(at)
if not may_own(boot) then return { {}, { 0 }, {}, 0, 1, at, {} } end
local rules = ARGV[8] ~= '' and LIMIT_RULES .. ARGV[8]
if rules and redis.call('EXISTS', rules) == 0 then return { {}, { 0 }, {}, 0, 2, at, {} } end

local jobs, skipped, broken, unadopted = {}, { 0 }, {}, {}
local claims, taken = {}, {}
-- The ready entries to remove, by queue.
local leaving = {}
local ids_seen, bytes, held_number = 0, 0, 0

-- Most lists are empty, and an actor that matches many expressions has many: those that exist. Under a fair limit the jobs
-- that wait stand in none.
local lists, LISTS_PER_LOOK = {}, 12
local has_fair = string.find(limits_text, '"fair":', 1, true)
if has_fair then lists = KEYS end
for first = 1, has_fair and 0 or #KEYS, LISTS_PER_LOOK do
  local last = math.min(first + LISTS_PER_LOOK - 1, #KEYS)
  local number = redis.call('EXISTS', unpack(KEYS, first, last))
  for place = first, number > 0 and last or 0 do
    if redis.call('EXISTS', KEYS[place]) == 1 then
      lists[#lists + 1], number = KEYS[place], number - 1
      if number == 0 then break end
    end
  end
end

-- The queues to leave alone. One cheap query as long as nothing is paused and no graph has a window.
local is_paused, has_windows = {}, false
if redis.call('EXISTS', PAUSED, WINDOWS) > 0 then
  has_windows = redis.call('EXISTS', WINDOWS) == 1
  for _, list in ipairs(lists) do
    local queue = queue_of_list(list)
    if is_paused[queue] == nil then is_paused[queue] = rarely().is_queue_paused(queue) end
  end
end

local function skip(id, why)
  local shown_max = 8
  skipped[1] = skipped[1] + 1
  if #skipped <= 2 * shown_max then
    skipped[#skipped + 1] = string.sub(id, 1, 64)
    skipped[#skipped + 1] = why
  end
end

local function remove_from_ready(id, queue)
  leaving[queue] = leaving[queue] or {}
  table.insert(leaving[queue], id)
end

local has_limits = limits_text ~= '' or rules
local under_limits

local function limits_of_claim()
  under_limits = under_limits or rarely().claim_under_limits({ type = own_type, actor = actor, at = at,
    jobs = jobs, limits = json_table(limits_text) or {}, rules = rules })
  return under_limits
end

-- The fields that decide about a claim.
local DECIDING = { status = true, attempt = true, script_type = true, boot_id = true, legacy = true,
  concurrent = true, crashes = true, expires = true, slow_after = true, graph_id = true }

-- Decides about an id of a list. Returns true if the job may not be claimed ahead, and stays.
local function take(id, list, queue)
  local hash = redis.pcall('HGETALL', JOB .. id)
  if hash.err or #hash == 0 then
    remove_from_ready(id, queue)
    return skip(id, hash.err and 'its key is no hash' or 'no such job')
  end
  local size, f = 0, {}
  for i = 1, #hash, 2 do
    local name, value = hash[i], hash[i + 1]
    size = size + #name + #value
    if DECIDING[name] then f[name] = value end
  end
  local status, legacy = canonical_status(f.status), f.legacy
  local attempt, typed = tonumber(f.attempt) or 0, present(f.script_type)
  local window = has_windows and legal_id(f.graph_id) and rarely().window_of(id, f.graph_id) or nil
  local is_limited = has_limits or says_no(f.concurrent) or window
  local is_ahead = #jobs >= begins
  -- An actor that a job kills takes down the jobs that wait after it.
  if is_ahead and (is_limited or f.crashes) then return true end
  bytes = bytes + size
  if present(legacy) and status == 'dispatched' and not remove_copy(id, legacy) then
    -- An old worker has popped the copy and will start the job. By the ready entry the supervisor notes
    -- the start, or puts the job back.
    if LEGACY then note_seen(legacy, 'popped_at', at) end
    return skip(id, 'an old worker has taken it')
  end
  -- Limits do not apply to a job that older programs may take as well.
  local held, limited = false, nil
  if is_limited and status == 'dispatched' and not present(legacy) then
    held, limited = limits_of_claim().is_held(id, hash, list, window)
  end
  if held then
    held_number = held_number + 1
    if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
    return
  end
  -- The supervisor notices the end that a foreign actor wrote by the ready entry alone.
  if status ~= 'finished' and status ~= 'error' then remove_from_ready(id, queue) end
  if status ~= 'dispatched' then
    -- A second copy of a job that a foreign actor runs: it must stay in an index.
    if status == 'started' and not taken[id] and not is_ours(id, f.boot_id) then
      rarely().note_foreign_start(id, own_type, at)
    end
    return skip(id, 'its status is ' .. string.sub(status or 'missing', 1, 32))
  end
  if f.expires then redis.pcall('ZREM', EXPIRING, id) end
  local slow_after = f.slow_after or type_time('slow_after', own_type)
  if slow_after then rarely().note_slow_time(id, slow_after, at) end
  attempt = attempt + 1
  log_event(id, 'started', own_type, actor)
  redis.call('HSET', JOB .. id, 'status', 'started', 'started_at', when, 'updated_at', when,
    'actor', actor, 'boot_id', boot, 'attempt', attempt)
  if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
  if slow_after and not f.slow_after then redis.call('HSET', JOB .. id, 'slow_after', slow_after) end
  if limited then under_limits.take_slots(id, attempt, limited) end
  local claimed_at = at + 2 * #jobs + (is_ahead and 1 or 0)
  claims[#claims + 1] = integer(claimed_at)
  claims[#claims + 1] = id
  taken[id] = true
  jobs[#jobs + 1] = { id, list, attempt, claimed_at, size <= size_max and hash or {} }
end

local most, none_ahead = math.min(wanted, JOBS_PER_STEP), false
local function has_room_for_ids() return bytes < BYTES_PER_STEP and held_number < HELD_PER_STEP end
local function has_room() return #jobs < most and ids_seen < IDS_PER_STEP and has_room_for_ids() end

-- Takes the first ids out of a list, up to one without a ready entry.
local function take_out(list, queue)
  local ids = redis.pcall('LRANGE', list, 0, math.min(most - #jobs, IDS_PER_STEP - ids_seen) - 1)
  if ids.err or #ids == 0 then return ids end
  local scores, number = redis.call('ZMSCORE', READY .. queue, unpack(ids)), 0
  -- Without the index no job is recovered from an actor that pops, but all run.
  local is_blind = has_wrong_type[READY .. queue]
  while number < #ids and (scores[number + 1] or is_blind) do number = number + 1 end
  if number < #ids then unadopted[#unadopted + 1] = list end
  return number > 0 and redis.call('LPOP', list, number) or {}
end

-- Claims from a list until it has no ready id more, or the step has enough.
local function claim_from(list)
  local queue = queue_of_list(list)
  while not is_paused[queue] and has_room() and unadopted[#unadopted] ~= list do
    local ids = take_out(list, queue)
    if ids.err then
      broken[#broken + 1] = list
      broken[#broken + 1] = ids.err
      return
    end
    if #ids == 0 then return end
    local number = 1
    while ids[number] and has_room_for_ids() do
      if take(ids[number], list, queue) then
        none_ahead, most = true, #jobs
        break
      end
      number = number + 1
    end
    ids_seen = ids_seen + number - 1
    -- Jobs that are left for the next call go back to where they were.
    for place = #ids, number, -1 do redis.call('LPUSH', list, ids[place]) end
  end
end

local is_left = false
if has_fair then
  local open = {}
  for _, list in ipairs(lists) do
    local length = not is_paused[queue_of_list(list)] and redis.pcall('LLEN', list)
    if type(length) == 'number' then open[#open + 1] = list end
  end
  lists, is_left = open, limits_of_claim().choose(open, begins)
end

for _, list in ipairs(lists) do claim_from(list) end

if #claims > 0 then
  redis.call('ZADD', RUNNING .. boot, unpack(claims))
  count(own_type, 'started', #jobs)
end
for queue, ids in pairs(leaving) do redis.call('ZREM', READY .. queue, unpack(ids)) end
local is_full = not has_room()
for _, list in ipairs(lists) do
  local queue = queue_of_list(list)
  local length = (#jobs > 0 or is_full) and not is_paused[queue] and redis.pcall('LLEN', list)
  if type(length) == 'number' and length > 0 then
    if is_full then wake(queue) end
    -- Jobs that old workers popped stand in the index alone.
    if #jobs > 0 and (LEGACY and length <= SEARCHED_QUEUE_LEN or length > redis.call('ZCARD', READY .. queue)) then
      rarely().remove_other_copies(list, jobs, taken)
    end
  end
end
if has_fair then limits_of_claim().wake_others(lists) end
if skipped[1] > 0 then count(own_type, 'skipped', skipped[1]) end
write_counts()
return { jobs, skipped, broken, is_left and 3 or none_ahead and 2 or (#jobs < wanted and is_full) and 1 or 0, 0, at, unadopted }
