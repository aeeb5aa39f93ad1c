-- Claims jobs for one actor: its boot owns them from then on.
--
-- KEYS: the work lists of the actor, in order
-- ARGV: 1 boot  2 actor, TYPE:GROUP:INSTANCE  3 its script type
--       4 limit on the number of jobs, popped ones included
--       5 how many of them begin at once; the others are claimed ahead and wait for a thread
--       6 limit on the bytes of one hash
--       7 number of ids popped before, then for each: its work list, the id
--       last three: the limits of the configuration as JSON, or '' if it has none; retention;
--       '1' if an ended job runs again when its id is pushed
-- returns { jobs, skipped, broken, more, fenced, paused, time, later, again }
--       jobs     for each: { id, work list, attempt, time of its claim in us, fields and values | {} if too
--                large }
--       skipped  { number, a few of them: id, reason, … }
--       broken   { work list, error, … } of lists that cannot be read
--       more     1 if the script took as many ids, jobs or bytes as one step may: call again; 2 if the
--                next job may not be claimed ahead
--       fenced   1 if the boot holds no lease: nothing is claimed, as no sweep would recover it, and
--                popped ids that have no ready entry go back
--       paused   work lists of paused queues: nothing was taken from them, and ids popped from one
--                went back to its front
--       time     of the claim, in us
--       later    { work list, id, … } of ids to put back after a moment: an old worker may have popped
--                another copy and be about to write its start
--       again    ids of jobs that had ended and run again: a program has pushed them
-- needs: wrong_type time names routing job owner sweep counters index events legacy leftovers other_copies
-- rarely: foreign_start claim_limits claim_legacy adoption pushed_again

local boot, actor, own_type = ARGV[1], ARGV[2], ARGV[3]
local wanted, begins, size_max = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local last_popped = 6 + 2 * ARGV[7]
local POPS_PER_STEP, JOBS_PER_STEP, BYTES_PER_STEP = 1000, 128, 524288

-- The times of the claims are even, and odd for jobs that are claimed ahead: by this the recovery of a
-- dead boot knows that they may not have begun.
local at = now_us()
at = at - at % 2
local when = rfc3339(at)
local jobs, skipped, broken, later = {}, { 0 }, {}, {}
local claims, taken = {}, {}
local unready = {}
local bytes = 0

-- Puts a popped id back. If this call is made again, as its answer was lost, the id stands there twice.
local function push_popped(list, id)
  local f = read(id, 'status', 'leftover')
  local has_ended = f[1] == 'finished' or f[1] == 'error'
  if has_ended and is_leftover(f[2], at) then return end
  redis.pcall('LPUSH', list, id)
  if f[1] and not has_ended then mark_leftover(id, at, LEFTOVER_US) end
end

if last_popped > 7 then despite_full_memory() end
if not may_own(boot) then
  for i = last_popped, 8, -2 do
    -- The sweep for lost pops finds, or has found, an id with a ready entry.
    local list, id = ARGV[i], ARGV[i + 1]
    local status = read(id, 'status')[1]
    -- One that has ended since was perhaps popped long ago.
    if status ~= 'finished' and status ~= 'error'
      and not redis.call('ZSCORE', READY .. queue_of_list(list), id) then
      push_popped(list, id)
    end
  end
  return { {}, { 0 }, {}, 0, 1, {}, at, {}, {} }
end

-- The lists to leave alone. One cheap query as long as no queue is paused.
local paused, is_paused = {}, {}
local some_are_paused = redis.call('EXISTS', PAUSED) == 1
if some_are_paused then
  local lists, queues = { unpack(KEYS) }, {}
  for i = 8, last_popped, 2 do lists[#lists + 1] = ARGV[i] end
  for place, list in ipairs(lists) do queues[place] = queue_of_list(list) end
  local answers = #lists > 0 and redis.call('SMISMEMBER', PAUSED, unpack(queues)) or {}
  for place, is in ipairs(answers) do
    if is == 1 and not is_paused[lists[place]] then
      is_paused[lists[place]] = true
      paused[#paused + 1] = lists[place]
    end
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

local function remove_from_ready(id, list)
  local ids = unready[list]
  if not ids then
    ids = {}
    unready[list] = ids
  end
  ids[#ids + 1] = id
end

-- An old worker has popped the copy and will start the job. The entry in the ready index stays:
-- by it the supervisor notes the start, or puts the job back.
local function leave_to_old_worker(id, list, legacy)
  local queue = queue_of_list(list)
  if not (LEGACY and legacy_queue(list)) and not redis.call('ZSCORE', READY .. queue, id) then
    local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
    register(QUEUES, queue)
    redis.call('ZADD', READY .. queue, integer(tonumber(first[2] or at) - 1), id)
  end
  if not legacy then return end
  if LEGACY then note_seen(legacy, 'popped_at', at) end
  skip(id, 'an old worker has taken it')
end

-- Returns true if a job that a foreign program pushed may start. Such a program may have pushed it to
-- a legacy queue too, in a step of its own. If the copy is there, the claim removes it. If not, an old
-- worker may have popped it: the first look leaves the job alone, so that the worker can say so.
local has_no_other_copy
if LEGACY then
  function has_no_other_copy(id, list, legacy)
    local found = withdraw_copies(id, type_of_queue(queue_of_list(list)))
    if found == nil or legacy or redis.call('HSETNX', JOB .. id, 'legacy', '') == 0 or found then
      return true
    end
    leave_to_old_worker(id, list)
    later[#later + 1] = list
    later[#later + 1] = id
    return false
  end
end

local runs_again, again = ARGV[last_popped + 4] == '1', {}

local take
do
  local limits_text = ARGV[last_popped + 2]
  local has_limits = present(limits_text) and limits_text ~= '[]'
  local under_limits, take_over, adopt

  -- Adopts a job that no script of Hero has put into its queue. Returns true if it may start.
  local function may_start(id, hash, list, legacy)
    local fields = {}
    for i = 1, #hash, 2 do fields[hash[i]] = hash[i + 1] end
    -- One that Hero put there has an entry, or a limit holds it.
    if present(legacy) or present(fields.held_by) or has_wrong_type[READY .. queue_of_list(list)] then
      return true
    end
    adopt = adopt or rarely().adopting(at, ARGV[last_popped + 3])
    return adopt(id, fields, legal_type(fields.script_type) or own_type) == 'dispatched'
  end

  -- The fields that decide about a claim.
  local DECIDING = { status = true, attempt = true, script_type = true, boot_id = true, legacy = true,
    concurrent = true, crashes = true }

  -- `score` is that of its ready entry. Returns true if the job may not be claimed ahead, and stays.
  function take(id, list, score, is_popped)
    if not legal_id(id) then return skip(id, 'no legal id') end
    local hash = redis.pcall('HGETALL', JOB .. id)
    local old
    if LEGACY then old = legacy_queue(list) end
    if hash.err or #hash == 0 then
      if not old then remove_from_ready(id, list) end
      return skip(id, hash.err and 'its key is no hash' or 'no such job')
    end
    local size, f = 0, {}
    for i = 1, #hash, 2 do
      local name, value = hash[i], hash[i + 1]
      size = size + #name + #value
      if DECIDING[name] then f[name] = value end
    end
    local status, boot_id, legacy = canonical_status(f.status), f.boot_id, f.legacy
    local attempt, typed = tonumber(f.attempt) or 0, present(f.script_type)
    local is_limited, is_again = has_limits or says_no(f.concurrent), false
    local is_ahead = #jobs >= begins
    -- An actor that a job kills takes those down that wait behind it.
    if is_ahead and (is_limited or f.crashes) and not is_popped then return true end
    bytes = bytes + size
    if runs_again and (status == 'finished' or status == 'error') and not score then
      local why_not = rarely().run_again(id, hash, not old and queue_of_list(list) or nil, own_type, at)
      if why_not then return skip(id, why_not) end
      hash, status, boot_id, is_again = redis.call('HGETALL', JOB .. id), 'dispatched', nil, true
      legacy = legacy and ''
      again[#again + 1] = id
    end
    -- Older programs may leave out the status.
    if old then status = status or 'dispatched' end
    if present(legacy) and status == 'dispatched' and list ~= legacy and not remove_copy(id, legacy) then
      return leave_to_old_worker(id, list, legacy)
    end
    if not score and status == 'dispatched' and not old and not is_again and size <= size_max
      and not may_start(id, hash, list, legacy) then
      return
    end
    if LEGACY and status == 'dispatched' and not old and not present(legacy)
      and not has_no_other_copy(id, list, legacy) then
      return
    end
    -- Limits do not apply to a job that older programs may take as well.
    local held, limited = false, nil
    if is_limited and status == 'dispatched' and not old and not present(legacy) then
      under_limits = under_limits or rarely().claim_under_limits({
        type = own_type, actor = actor, at = at, jobs = jobs,
        limits = has_limits and cjson.decode(limits_text) or {} })
      held, limited = under_limits.is_held(id, hash, list)
    end
    if held then
      if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
      return
    end
    -- The supervisor notices the end that a foreign actor wrote by the ready entry alone.
    if status ~= 'finished' and status ~= 'error' and not old then remove_from_ready(id, list) end
    if status ~= 'dispatched' then
      -- A second copy of a job that a foreign actor runs: it must stay in an index.
      if status == 'started' and not taken[id] and not is_ours(id, boot_id) then
        rarely().note_foreign_start(id, own_type, at)
      end
      return skip(id, 'its status is ' .. string.sub(status or 'missing', 1, 32))
    end
    if old then
      take_over = take_over or rarely().claim_from_legacy({
        type = own_type, at = at, when = when, skip = skip, some_are_paused = some_are_paused })
      list = take_over(id, hash, legacy, old)
      if not list then return end
    end
    attempt = attempt + 1
    log_event(id, 'started', own_type, actor)
    redis.call('HSET', JOB .. id, 'status', 'started', 'started_at', when, 'updated_at', when,
      'actor', actor, 'boot_id', boot, 'attempt', attempt)
    if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
    if limited then under_limits.take_slots(id, attempt, limited) end
    if LEGACY and not present(legacy) then expect_second_push(id, own_type, at) end
    local claimed_at = at + 2 * #jobs + (is_ahead and 1 or 0)
    claims[#claims + 1] = integer(claimed_at)
    claims[#claims + 1] = id
    taken[id] = true
    jobs[#jobs + 1] = { id, list, attempt, claimed_at, size <= size_max and hash or {} }
  end
end

for i = last_popped, 8, -2 do
  if is_paused[ARGV[i]] then push_popped(ARGV[i], ARGV[i + 1]) end
end
for i = 8, last_popped, 2 do
  local list, id = ARGV[i], ARGV[i + 1]
  if not is_paused[list] then
    take(id, list, redis.call('ZSCORE', READY .. queue_of_list(list), id), true)
  end
end

-- The legacy queues that a pattern stands for are no keys of the actor.
if LEGACY then
  local group, instance = string.match(actor, '^[^:]+:([^:]+):([^:]+)$')
  for _, queue in ipairs(LEGACY) do
    if queue.is_found and queue.type == own_type and queue.group == group
      and (queue.instance == '' or queue.instance == instance) then
      KEYS[#KEYS + 1] = queue.list
    end
  end
end

-- Usually all lists are empty for an actor that its pop has just woken.
local pops, most, none_ahead = 0, math.min(wanted, JOBS_PER_STEP), false
local function has_room() return #jobs < most and pops < POPS_PER_STEP and bytes < BYTES_PER_STEP end
-- Claims from one list, until it is empty or the step has enough.
local function claim_from(list)
  -- Older clients push to the head alone, so the oldest of their jobs stands at the end.
  local is_old = LEGACY and legacy_queue(list)
  while not is_paused[list] and has_room() do
    local ids = redis.pcall(is_old and 'RPOP' or 'LPOP', list, math.min(most - #jobs, POPS_PER_STEP - pops))
    if not ids then break end
    if ids.err then
      broken[#broken + 1] = list
      broken[#broken + 1] = ids.err
      break
    end
    local scores = redis.call('ZMSCORE', READY .. queue_of_list(list), unpack(ids))
    local number = 1
    while ids[number] and bytes < BYTES_PER_STEP do
      if take(ids[number], list, scores[number]) then
        none_ahead, most = true, #jobs
        break
      end
      number = number + 1
    end
    pops = pops + number - 1
    -- Jobs that are left for the next call go back to where they were.
    for place = #ids, number, -1 do redis.call(is_old and 'RPUSH' or 'LPUSH', list, ids[place]) end
  end
end

if #jobs < wanted and #KEYS > 0 and redis.call('EXISTS', unpack(KEYS)) > 0 then
  for _, list in ipairs(KEYS) do claim_from(list) end
end

if #claims > 0 then
  redis.call('ZADD', RUNNING .. boot, unpack(claims))
  count(own_type, 'started', #jobs)
end
for list, ids in pairs(unready) do
  redis.call('ZREM', READY .. queue_of_list(list), unpack(ids))
end
if #jobs > 0 then remove_other_copies(jobs, taken, at) end
if skipped[1] > 0 then count(own_type, 'skipped', skipped[1]) end
write_counts()
return { jobs, skipped, broken, none_ahead and 2 or (#jobs < wanted and not has_room()) and 1 or 0, 0, paused, at, later, again }
