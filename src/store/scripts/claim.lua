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

local boot, actor, own_type = ARGV[1], ARGV[2], ARGV[3]
local wanted, size_max = tonumber(ARGV[4]), tonumber(ARGV[5])
local POPS_PER_STEP = 1000
local SKIPPED_SHOWN = 8

local at = now_us()
local when = rfc3339(at)
local jobs, skipped, broken = {}, { 0 }, {}
local claims, taken = {}, {}
local unready = {}

local function queue_of_list(list)
  local queue = string.sub(list, #WORK + 1)
  return (string.gsub(queue, ':prio:1$', ''))
end

if not may_own(boot) then
  for i = 5 + 2 * tonumber(ARGV[6]), 7, -2 do
    -- What has a ready entry is found by the sweep for lost pops, perhaps has been already.
    if not redis.call('ZSCORE', READY .. queue_of_list(ARGV[i]), ARGV[i + 1]) then
      redis.pcall('LPUSH', ARGV[i], ARGV[i + 1])
    end
  end
  return { {}, { 0 }, {}, 0, 1, {} }
end

-- The lists to leave alone. One cheap question as long as nothing is paused.
local paused, is_paused = {}, {}
local function look_for_paused()
  local lists, queues = { unpack(KEYS) }, {}
  for i = 7, 5 + 2 * tonumber(ARGV[6]), 2 do lists[#lists + 1] = ARGV[i] end
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
if some_are_paused then look_for_paused() end

local function skip(id, why)
  skipped[1] = skipped[1] + 1
  if #skipped <= 2 * SKIPPED_SHOWN then
    skipped[#skipped + 1] = string.sub(id, 1, 64)
    skipped[#skipped + 1] = why
  end
end

local function unready_later(id, list)
  local queue = queue_of_list(list)
  local entries = unready[queue]
  if not entries then
    entries = {}
    unready[queue] = entries
  end
  entries[#entries + 1] = id
end

-- The limits of the configuration, if it has any.
local limits_text = ARGV[7 + 2 * tonumber(ARGV[6])]
local limits = present(limits_text) and cjson.decode(limits_text) or {}
local has_limits = #limits > 0
local lane = '@' .. string.gsub(actor, ':', '/')
-- Held jobs that this claim lets go on, until it has met them: they have a place.
local let_go, let_go_number = {}, {}

-- The end of a limit's name for what it counts separately; what is long or strange is hashed.
local function part(value)
  if #value <= 64 and string.match(value, '^[A-Za-z0-9_.@/-]+$') then return '=' .. value end
  return '#' .. redis.sha1hex(value)
end

-- The limits that a job is under.
local function limits_of(job)
  local of = {}
  if job.concurrent == 'false' or job.concurrent == '0' then of[1] = { name = lane, running = 1 } end
  local group, caller = present(job.group) or 'default', job.caller_id or ''
  local key = present(job.limit_key)
  for _, limit in ipairs(limits) do
    if (not limit.type or limit.type == own_type) and (not limit.group or limit.group == group)
      and (not limit.caller or limit.caller == caller) and (not limit.key or limit.key == key) then
      local per = { type = own_type, group = own_type .. '/' .. group, caller = caller, key = key }
      local value = limit.per and per[limit.per]
      if not limit.per or value then
        of[#of + 1] = { name = limit.name .. (value and part(value) or ''), running = limit.running,
          rate = limit.rate, period_us = limit.period_us }
      end
    end
  end
  return of
end

-- How many jobs of a limit may start now, and when to look again if none may.
local function places_in(limit)
  local free, look = math.huge, at + PROBE_US
  if limit.running then free = limit.running - redis.call('ZCARD', LIMIT_RUNNING .. limit.name) end
  if limit.rate then
    local starts = LIMIT_STARTS .. limit.name
    redis.call('ZREMRANGEBYSCORE', starts, '-inf', integer(at - limit.period_us))
    local left = limit.rate - redis.call('ZCARD', starts)
    if left <= 0 and free > 0 then
      look = tonumber(redis.call('ZRANGE', starts, 0, 0, 'WITHSCORES')[2]) + limit.period_us
    end
    free = math.min(free, left)
  end
  return free - (let_go_number[limit.name] or 0), look
end

local function let_some_go(limit, number)
  for _, id in ipairs(release_held(limit.name, math.min(number, POPS_PER_STEP), at)) do
    let_go[id] = limit.name
    let_go_number[limit.name] = (let_go_number[limit.name] or 0) + 1
  end
end

local function hold(id, queue, limit, score, look)
  redis.call('ZREM', READY .. queue, id)
  redis.call('ZADD', HELD .. queue, integer(score), id)
  redis.call('ZADD', LIMIT_HELD .. limit.name, integer(score), queue .. ' ' .. id)
  redis.call('ZADD', LIMITS, integer(look), limit.name)
  redis.call('HDEL', LIMIT_PROBES, limit.name)
  redis.call('HSET', JOB .. id, 'held_by', limit.name)
  register(QUEUES, queue)
  count(own_type, 'held')
end

-- Whether a job has to wait for one of its limits, and if not, all of them.
local function is_held(id, job, list)
  local of = limits_of(job)
  if #of == 0 then return false, of end
  local queue = queue_of(present(job.script_type) or own_type, job.group, job.instance, job.priority)
  -- What is not legal is ended by the actor, and takes no time.
  if not queue then return false, {} end
  local met = let_go[id]
  if met then
    let_go[id] = nil
    let_go_number[met] = let_go_number[met] - 1
  end
  local score = redis.call('ZSCORE', READY .. queue, id) or redis.call('ZSCORE', HELD .. queue, id)
  score = tonumber(score) or at + #jobs
  redis.call('ZREM', READY .. queue_of_list(list), id)
  -- A second copy of one that is held.
  if job.held_by then unhold(id, queue) end
  for _, limit in ipairs(of) do
    local free, look = places_in(limit)
    local first = free > 0 and redis.call('ZRANGE', LIMIT_HELD .. limit.name, 0, 0, 'WITHSCORES')[2]
    -- Nobody overtakes those that have waited for longer.
    local is_behind = first and tonumber(first) < score
    if free <= 0 or is_behind then
      hold(id, queue, limit, score, look)
      if is_behind then let_some_go(limit, free) end
      return true
    end
  end
  return false, of
end

-- A job that starts has a place in each of its limits; if there are more, those that wait go on.
local function take_places(id, attempt, of)
  local names = {}
  for _, limit in ipairs(of) do
    if limit.running then
      redis.call('ZADD', LIMIT_RUNNING .. limit.name, integer(at), id)
      names[#names + 1] = limit.name
    end
    if limit.rate then
      redis.call('ZADD', LIMIT_STARTS .. limit.name, integer(at), id .. ' ' .. attempt)
      redis.call('PEXPIRE', LIMIT_STARTS .. limit.name, math.ceil(limit.period_us / 1000))
    end
    if redis.call('EXISTS', LIMIT_HELD .. limit.name) == 1 then
      local free, look = places_in(limit)
      if free > 0 then let_some_go(limit, free) end
      redis.call('ZADD', LIMITS, integer(look), limit.name)
    end
  end
  if #names > 0 then redis.call('HSET', JOB .. id, 'limits', table.concat(names, ' ')) end
end

local LIMITED_BY = { script_type = true, group = true, instance = true, priority = true,
  caller_id = true, limit_key = true, concurrent = true, held_by = true }
local function limited_by(hash)
  local job = {}
  for i = 1, #hash, 2 do
    if LIMITED_BY[hash[i]] then job[hash[i]] = hash[i + 1] end
  end
  return job
end

-- An old worker has popped the copy of the job, and will say that it has started it. The entry in
-- the ready index stays: the supervisor notes what the worker does, or puts the job back.
local function leave_to_old_worker(id, list, legacy)
  local queue = queue_of_list(list)
  if not legacy_queue(list) and not redis.call('ZSCORE', READY .. queue, id) then
    local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
    register(QUEUES, queue)
    redis.call('ZADD', READY .. queue, integer(tonumber(first[2] or at) - 1), id)
  end
  seen(legacy, 'popped_at', at)
  skip(id, 'an old worker has taken it')
end

-- A legacy queue holds jobs of many queues, so it is never paused as a whole. What it holds for a
-- queue that is waits there, in no legacy queue any more: an old worker would run it all the same.
local function is_queue_paused(queue)
  return some_are_paused and redis.call('SMISMEMBER', PAUSED, queue)[1] == 1
end

local function leave_to_paused_queue(id)
  redis.call('HSET', JOB .. id, 'legacy', '')
  skip(id, 'its queue is paused')
end

-- Somebody has popped the job from Hero's own queue: an actor of ours whose claim follows, or a
-- foreign one, which has not said so yet. The job is theirs, and stands in no legacy queue any more;
-- should they have died, the sweep for lost pops puts it back into both.
local function leave_to_whoever_popped(id)
  redis.call('HSET', JOB .. id, 'legacy', '')
  skip(id, 'it was popped from its own queue')
end

-- Whether a job that an older program pushed has to wait for others. One that can only fail, for a
-- prerequisite of its own has, waits as well, until the supervisor tells it.
local function is_held_back(id, fields, old)
  local prerequisites = list_of_ids(present(fields.prerequisites))
  for _, prerequisite in ipairs(list_of_ids(present(fields.dependencies))) do
    prerequisites[#prerequisites + 1] = prerequisite
  end
  local pending, over = {}, {}
  for _, prerequisite in ipairs(prerequisites) do
    local status = read(prerequisite, 'status')[1]
    if not status or status == 'error' then
      over[#over + 1] = prerequisite
    elseif status ~= 'finished' then
      pending[#pending + 1] = prerequisite
    end
  end
  if #over + #pending == 0 then return false end
  for _, prerequisite in ipairs(over) do redis.call('SADD', PENDING .. id, prerequisite) end
  add_dependent(id, pending)
  moving(id, 'waiting_for_prerequisites', own_type)
  redis.call('HSET', JOB .. id, 'status', 'waiting_for_prerequisites', 'updated_at', when,
    'legacy_origin', old.list)
  enter('waiting_for_prerequisites', own_type, id, at)
  return true
end

-- Takes over a job from a legacy queue: voids its copy in Hero's own, or makes a job of Hero's of
-- what an older program wrote. Returns the work list it belongs to, nil if it cannot start.
local function take_over(id, hash, legacy, old)
  local fields = {}
  for i = 1, #hash, 2 do fields[hash[i]] = hash[i + 1] end
  local queue = queue_of(fields.script_type, fields.group, fields.instance, fields.priority)
  if legacy == old.list and queue then
    if is_queue_paused(queue) then return leave_to_paused_queue(id) end
    local length = redis.pcall('LLEN', WORK .. queue)
    local is_short = type(length) == 'number' and length <= SEARCHED_QUEUE_LEN
    if is_short and redis.call('LREM', WORK .. queue, 1, id) == 0
      and redis.call('ZSCORE', READY .. queue, id) then
      return leave_to_whoever_popped(id)
    end
    redis.call('ZREM', READY .. queue, id)
    return WORK .. queue
  end
  seen(old.list, 'pushed_at', at)
  for i = 1, #hash, 2 do
    -- In a spelling of their own.
    if hash[i] == 'script_type' then hash[i + 1] = own_type end
    if hash[i] == 'status' then hash[i + 1] = 'dispatched' end
  end
  -- From here on the job is for those that its queue was for.
  local group = present(fields.group) or old.group ~= 'default' and old.group or nil
  local instance = present(fields.instance) or present(old.instance)
  redis.call('HSET', JOB .. id, 'legacy', old.list, 'script_type', own_type)
  if group then redis.call('HSET', JOB .. id, 'group', group) end
  if instance then redis.call('HSET', JOB .. id, 'instance', instance) end
  if is_held_back(id, fields, old) then return nil end
  queue = queue_of(own_type, group, instance, fields.priority) or 'type:' .. own_type
  if is_queue_paused(queue) then
    register(TYPES, own_type)
    register(QUEUES, queue)
    redis.call('HSET', JOB .. id, 'status', 'dispatched', 'updated_at', when)
    redis.call('ZADD', READY .. queue, integer(at), id)
    redis.pcall('RPUSH', WORK .. queue, id)
    return leave_to_paused_queue(id)
  end
  return WORK .. queue
end

local function take(id, list)
  if not legal_id(id) then return skip(id, 'no legal id') end
  local hash = redis.pcall('HGETALL', JOB .. id)
  local old = LEGACY and legacy_queue(list)
  if hash.err or #hash == 0 then
    if not old then unready_later(id, list) end
    return skip(id, hash.err and 'its key is no hash' or 'no such job')
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
    return leave_to_old_worker(id, list, legacy)
  end
  -- A job that older programs may take as well is theirs to run when they like.
  local held, limited = false, nil
  if is_limited and status == 'dispatched' and not old and not present(legacy) then
    held, limited = is_held(id, limited_by(hash), list)
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
    return skip(id, 'its status is ' .. string.sub(status or 'missing', 1, 32))
  end
  if old then
    list = take_over(id, hash, legacy, old)
    if not list then return end
  end
  attempt = attempt + 1
  moving(id, 'started', own_type, actor)
  redis.call('HSET', JOB .. id, 'status', 'started', 'started_at', when, 'updated_at', when,
    'actor', actor, 'boot_id', boot, 'attempt', attempt)
  -- From here on the job has the type of whoever took it.
  if not typed then redis.call('HSET', JOB .. id, 'script_type', own_type) end
  if limited then take_places(id, attempt, limited) end
  claims[#claims + 1] = integer(at + #jobs)
  claims[#claims + 1] = id
  taken[id] = true
  jobs[#jobs + 1] = { id, list, attempt, size <= size_max and hash or {} }
end

for i = 5 + 2 * tonumber(ARGV[6]), 7, -2 do
  if is_paused[ARGV[i]] then redis.pcall('LPUSH', ARGV[i], ARGV[i + 1]) end
end
for i = 7, 6 + 2 * tonumber(ARGV[6]), 2 do
  if not is_paused[ARGV[i]] then take(ARGV[i + 1], ARGV[i]) end
end

local pops = 0
for _, list in ipairs(KEYS) do
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
for queue, ids in pairs(unready) do
  redis.pcall('ZREM', READY .. queue, unpack(ids))
end
if skipped[1] > 0 then count(own_type, 'skipped', skipped[1]) end
write_counts()
return { jobs, skipped, broken, (#jobs < wanted and pops >= POPS_PER_STEP) and 1 or 0, 0, paused }
