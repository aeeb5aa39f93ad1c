-- What the scripts share. The constants of the keys come before it.
--
-- A job moves from one state to another only through the functions here, and stands in exactly
-- one index while it is in a state:
--   dispatched  READY..queue                  by dispatch
--               HELD..queue                   likewise, if a limit holds it back
--   started     RUNNING..boot                 by start
--   the others  INDEX..status..':type:'..type by the time that matters to the state
-- All scores are microseconds of Redis's clock.

local REPLY_TTL_S = '60'
-- Dependents that one script tells at the most; the rest waits for the supervisor.
local DEPENDENTS_PER_STEP = 1000
-- Bytes of ids that the field `dependents` takes. What comes later stands in a list beside it: a
-- field is rewritten whole with every id.
local DEPENDENTS_FIELD_BYTES = 32768
-- Before the id of a prerequisite that has to end, however, in the set of those that are pending.
local ANY = '?'
-- Entries of past jobs that one script removes from an index at the most.
local EXPIRED_PER_STEP = 200
-- A queue up to this long is searched for a job that was taken out of it; a longer one keeps the
-- id, which whoever claims it skips.
local SEARCHED_QUEUE_LEN = 1000
-- Dead letters kept per type.
local DEAD_LEN_MAX = 10000
-- Types that one script looks at. With more of them a sweep takes some at random, and the next one
-- others.
local TYPES_PER_STEP = 200
-- Where a periodic job stands is forgotten when it has not been looked at for so long: a year and
-- some, for those that fire once a year.
local CRON_TTL_S = 400 * 86400
-- Transitions that their log keeps; older ones go first.
local EVENTS_LEN_MAX = 100000

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Lua would write a number this large in exponential form.
local function integer(number)
  return string.format('%d', number)
end

-- RFC 3339, UTC, milliseconds: days to a date of the Gregorian calendar, years from March on. A
-- script asks for the same time again and again. Whole parts are made by what is left over, which
-- takes no call.
local written_us, written
local function rfc3339(us)
  if us == written_us then return written end
  local of_second = us % 1000000
  local seconds = (us - of_second) / 1000000
  local of_day = seconds % 86400
  local shifted = (seconds - of_day) / 86400 + 719468
  local doe = shifted % 146097
  local yoe = doe - (doe - doe % 1460) / 1460 + (doe - doe % 36524) / 36524
    - (doe - doe % 146096) / 146096
  yoe = (yoe - yoe % 365) / 365
  local doy = doe - (365 * yoe + (yoe - yoe % 4) / 4 - (yoe - yoe % 100) / 100)
  local mp = 5 * doy + 2
  mp = (mp - mp % 153) / 153
  local before = 153 * mp + 2
  local day = doy - (before - before % 5) / 5 + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local of_hour = of_day % 3600
  local year = yoe + (shifted - doe) / 146097 * 400 + (month <= 2 and 1 or 0)
  written_us = us
  written = string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    (of_day - of_hour) / 3600, (of_hour - of_hour % 60) / 60, of_hour % 60,
    (of_second - of_second % 1000) / 1000)
  return written
end

-- Names that a stranger wrote into a hash must not become keys.
local function legal_type(name)
  return name and #name <= 32 and string.match(name, '^[a-z][a-z0-9_]*$') and name
end

local function legal_group(name)
  return name and #name <= 64 and string.match(name, '^[a-z0-9][a-z0-9_.-]*$') and name
end

local function legal_id(id)
  return type(id) == 'string' and #id <= 64 and string.match(id, '^[a-z0-9A-Z_-]+$') and id
end

local function legal_limit(name)
  return type(name) == 'string' and #name <= 200 and string.match(name, '^[A-Za-z0-9_.@/=#-]+$')
    and name
end

local function present(value)
  return value and value ~= '' and value or nil
end

-- The script type under which a job that does not wait stands in the indexes: its own, else that
-- of the actor that took it.
local function type_of_job(script_type, actor)
  return legal_type(script_type) or legal_type(string.match(actor or '', '^[^:]+')) or 'unknown'
end

-- The queue that a job's fields name: instance, else group, else type. Nil if they are illegal.
local function queue_of(script_type, group, instance, priority)
  script_type, group, instance, priority =
    legal_type(script_type), present(group), present(instance), present(priority)
  if not script_type then return nil end
  if group and not legal_group(group) then return nil end
  if instance and not (#instance <= 5 and string.match(instance, '^[1-9]%d*$')
      and tonumber(instance) <= 65535) then
    return nil
  end
  if priority and priority ~= '0' and priority ~= '1' and priority ~= '2' then return nil end
  local queue = 'type:' .. script_type
  if instance then
    queue = queue .. ':group:' .. (group or 'default') .. ':inst:' .. instance
  elseif group then
    queue = queue .. ':group:' .. group
  end
  if priority and priority ~= '1' then queue = queue .. ':prio:' .. priority end
  return queue
end

-- The queue that a work list is of, however it spells the priority in the middle.
local function queue_of_list(list)
  local last = string.sub(list, -7) == ':prio:1' and -8 or -1
  return string.sub(list, #WORK + 1, last)
end

local function type_of_queue(queue)
  return string.match(queue, '^type:([a-z0-9_]+)')
end

-- A status as Hero spells it: programs that are not Hero's write capitals as they like.
local function spelled(status)
  if not status or status == 'dispatched' or not string.find(status, '%u') then return status end
  local states = { created = true, waiting_for_prerequisites = true, scheduled = true,
    dispatched = true, started = true, finished = true, error = true }
  local lower = string.lower(status)
  return states[lower] and lower or status
end

-- Fields of a job; none if a stranger made the key something else, which must stop no script half
-- way: what it has written by then stays. A status that is read, as the first of them, stands in
-- Hero's spelling from then on.
local function read(id, ...)
  local fields = redis.pcall('HMGET', JOB .. id, ...)
  if fields.err then return {} end
  if (...) == 'status' then
    local status = spelled(fields[1])
    if status ~= fields[1] then
      redis.pcall('HSET', JOB .. id, 'status', status)
      fields[1] = status
    end
  end
  return fields
end

-- What happened, counted per type and written once, at the end of a script.
local counts = {}
local function count(script_type, what, number)
  local of_type = counts[script_type]
  if of_type then
    of_type[what] = (of_type[what] or 0) + (number or 1)
  else
    counts[script_type] = { [what] = number or 1 }
  end
end

local function write_counts()
  for script_type, of_type in pairs(counts) do
    for what, number in pairs(of_type) do
      redis.pcall('HINCRBY', STATS .. script_type, what, number)
    end
  end
end

-- Types and queues that a script put something into; each is registered once a script.
local registered = {}
local function register(key, name)
  if not registered[name] then
    registered[name] = true
    -- A type that comes back keeps the counters it had.
    if redis.call('SADD', key, name) == 1 and key == TYPES then
      redis.call('PERSIST', STATS .. name)
    end
  end
end

local function some_types()
  return redis.call('SRANDMEMBER', TYPES, TYPES_PER_STEP)
end

-- Messages in a control list at the most, and how long one that nobody reads stays.
local CONTROL_LEN_MAX = 10000
local CONTROL_TTL_S = 86400

-- Puts messages into the control list of one actor.
local function tell_actor(list, messages)
  redis.call('RPUSH', list, unpack(messages))
  redis.call('LTRIM', list, -CONTROL_LEN_MAX, -1)
  redis.call('EXPIRE', list, CONTROL_TTL_S)
end

-- Hands messages to every actor of a type that was heard of within a time.
local function tell_actors_of(script_type, messages, at, within_us)
  for _, actor in ipairs(redis.call('ZRANGEBYSCORE', ACTORS, integer(at - within_us), '+inf')) do
    local own, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
    if own == script_type then
      tell_actor(CONTROL .. own .. ':group:' .. group .. ':inst:' .. instance, messages)
    end
  end
end

-- Lets the script go on though Redis has reached its maxmemory. Redis refuses such a script only at
-- its first write that takes memory, not after one that cannot, which this is. What keeps accepted
-- jobs going must not be refused: a boot that cannot renew its lease would lose its jobs.
local function despite_full_memory()
  redis.call('ZREM', BOOTS, '')
end

-- Whether a boot may own jobs: its lease has not been declared over. The score 0 says that it has,
-- with jobs still to be put back.
local function may_own(boot)
  local lease = redis.call('ZSCORE', BOOTS, boot)
  return lease and tonumber(lease) > 0
end

-- Whether a boot of ours runs the job. A boot id in a hash is no proof: it stays there while the
-- job waits for its next attempt, which a foreign actor may take.
local function is_ours(id, boot)
  return present(boot) and redis.call('ZSCORE', RUNNING .. boot, id)
end

local function index_of(status, script_type)
  return INDEX .. status .. ':type:' .. script_type
end

-- Returns 1 if the job did not stand there before.
local function enter(status, script_type, id, score)
  register(TYPES, script_type)
  return redis.call('ZADD', index_of(status, script_type), integer(score), id)
end

-- Puts a job at the end of its queue. The status is the caller's to write. Jobs that one script
-- puts there stand in the ready index in the same order.
--
-- A list that somebody made of another type takes no entry. The script goes on for the other
-- queues, and the job is not lost: it stands in the ready index like one that was popped.
local pushed = 0
local function push_back(id, queue, at)
  register(TYPES, type_of_queue(queue))
  register(QUEUES, queue)
  redis.call('ZADD', READY .. queue, integer(at + pushed), id)
  redis.pcall('RPUSH', WORK .. queue, id)
  pushed = pushed + 1
  if LEGACY then copy_to_legacy(id, queue) end
end

-- Puts a job at the front of its queue: before all others in the ready index too, or those
-- behind it would look as if somebody had popped them.
local function push_front(id, queue, at)
  register(TYPES, type_of_queue(queue))
  register(QUEUES, queue)
  local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
  if first[2] then at = math.min(at, tonumber(first[2]) - 1) end
  redis.call('ZADD', READY .. queue, integer(at), id)
  redis.pcall('LPUSH', WORK .. queue, id)
  if LEGACY then copy_to_legacy(id, queue, true) end
end

-- Ends the waiting of a job that a limit holds back. Returns whether it was one.
local function unhold(id, queue)
  if redis.call('ZREM', HELD .. queue, id) == 0 then return false end
  local limit = legal_limit(redis.call('HGET', JOB .. id, 'held_by'))
  if limit then redis.call('ZREM', LIMIT_HELD .. limit, queue .. ' ' .. id) end
  redis.call('HDEL', JOB .. id, 'held_by')
  return true
end

-- Takes a waiting job out of its queue and the ready index, or from where a limit holds it back.
local function pull_out(id, queue)
  if redis.call('ZREM', READY .. queue, id) == 0 and unhold(id, queue) then return end
  local length = redis.pcall('LLEN', WORK .. queue)
  if type(length) == 'number' and length <= SEARCHED_QUEUE_LEN then
    redis.call('LREM', WORK .. queue, 1, id)
  end
  if LEGACY then withdraw(id, redis.call('HGET', JOB .. id, 'legacy')) end
end

-- Removes a job from the index of its state.
local function leave(id, status, script_type, fields)
  if status == 'dispatched' then
    local queue = queue_of(script_type, fields.group, fields.instance, fields.priority)
    if queue then pull_out(id, queue) end
  elseif status == 'started' then
    if present(fields.boot_id) then redis.call('ZREM', RUNNING .. fields.boot_id, id) end
  elseif legal_type(script_type) then
    redis.call('ZREM', index_of(status, script_type), id)
    if status == 'finished' or status == 'error' then
      -- One that a foreign actor ended stands where it stood until a sweep has noticed.
      redis.call('ZREM', index_of('started', script_type), id)
      local queue = queue_of(script_type, fields.group, fields.instance, fields.priority)
      if queue then redis.call('ZREM', READY .. queue, id) end
    end
  end
end

-- Removes what retention has let expire, some at a time.
local function trim(status, script_type, at)
  local index = index_of(status, script_type)
  local past = redis.call('ZRANGEBYSCORE', index, '-inf', integer(at), 'LIMIT', 0, EXPIRED_PER_STEP)
  if #past > 0 then redis.call('ZREM', index, unpack(past)) end
  return #past
end

local function release_unique(id, unique_key)
  if present(unique_key) and redis.call('GET', UNIQUE .. unique_key) == id then
    redis.call('DEL', UNIQUE .. unique_key)
  end
end

-- Writes a transition into the log of them, if the configuration asks for one. To be called before
-- the state is written, at every place that writes one. Whoever asks for no log pays for none.
local function moving(id, to, script_type, actor)
  if not EVENTS_ON then return end
  local f = read(id, 'status', 'script_type', 'actor')
  -- A foreign actor has written the state itself, and nobody knows what it was before.
  local from = f[1] ~= to and present(f[1]) or ''
  -- A key that somebody made of another type must stop no job.
  redis.pcall('XADD', EVENTS, 'MAXLEN', '~', EVENTS_LEN_MAX, '*', 'id', id, 'type',
    present(f[2]) or script_type or '', 'from', from, 'to', to, 'actor', actor or present(f[3]) or '')
end

-- The job that is still on its way with a unique key.
local function holder_of(unique_key)
  local holder = redis.call('GET', UNIQUE .. unique_key)
  if not holder then return nil end
  local status = read(holder, 'status')[1]
  if status and status ~= 'finished' and status ~= 'error' then return holder end
  return nil
end

local function push_reply(id, status, text)
  local reply = { job_id = id, status = status }
  reply[status == 'finished' and 'output' or 'error'] = text
  -- A list that somebody made of another type is their loss, not the job's.
  redis.pcall('RPUSH', REPLY .. id, cjson.encode(reply))
  redis.pcall('EXPIRE', REPLY .. id, REPLY_TTL_S)
end

-- How long a job is kept whose own field says `seconds`; what is no plain number says nothing.
-- `retention` is the argument of a script that says how long jobs are kept after their end: in ms,
-- that of a job which does not say so itself, and the most that one may say.
local function kept_ms(seconds, retention)
  local default_ms, max_ms = string.match(retention, '^(%d+) (%d+)$')
  if not string.match(seconds, '^%d+%.?%d*$') then return default_ms end
  return math.max(math.floor(math.min(tonumber(seconds) * 1000, tonumber(max_ms))), 1)
end

-- Lets a job that has ended go when its time is over. Returns for how long it is kept, in ms.
local function keep(id, seconds, retention)
  local for_ms = present(seconds) and kept_ms(seconds, retention)
    or string.match(retention, '^%d+')
  redis.call('PEXPIRE', JOB .. id, for_ms)
  -- Its log was given the time of a job that says nothing.
  if present(seconds) then redis.pcall('PEXPIRE', LOG .. id, for_ms) end
  return for_ms
end

-- Ends a job in `finished` or `error`: the one road into a terminal state. `job` holds the
-- fields script_type, reply, unique_key and retention as they stand; the index of the state it
-- leaves is the caller's. Dependents are told by `tell_dependents`.
local function conclude(id, job, status, text, exit_code, at, retention)
  local when = rfc3339(at)
  local text_field = status == 'finished' and 'output' or 'error'
  if EVENTS_ON then moving(id, status, job.script_type) end
  local fields = { 'status', status, text_field, text, 'finished_at', when, 'updated_at', when }
  if present(exit_code) then
    fields[#fields + 1] = 'exit_code'
    fields[#fields + 1] = exit_code
  end
  redis.call('HSET', JOB .. id, unpack(fields))
  local for_ms = keep(id, job.retention, retention)
  enter(status, job.script_type, id, at + for_ms * 1000)
  count(job.script_type, status == 'finished' and 'finished' or 'failed')
  if present(job.unique_key) then release_unique(id, job.unique_key) end
  if job.reply ~= '0' then
    push_reply(id, status, text)
    if LEGACY then reply_to_legacy(id, text) end
  end
  if string.sub(id, 1, #TASK_JOB) == TASK_JOB then answer_task_of(id, status, text, when) end
end

-- Puts a job that used up its attempts among the dead letters of its type.
local function bury(id, script_type)
  count(script_type, 'dead')
  redis.pcall('RPUSH', DEAD .. script_type, id)
  redis.pcall('LTRIM', DEAD .. script_type, -DEAD_LEN_MAX, -1)
end

-- Lets a job that has no prerequisite left go on: to the schedule or to its queue.
local function release(id, queue, run_at_us, at)
  local run_at = tonumber(run_at_us or '') or 0
  if run_at > at then
    moving(id, 'scheduled')
    redis.call('HSET', JOB .. id, 'status', 'scheduled')
    enter('scheduled', type_of_queue(queue), id, run_at)
    return 'scheduled'
  end
  moving(id, 'dispatched')
  redis.call('HSET', JOB .. id, 'status', 'dispatched')
  push_back(id, queue, at)
  return 'dispatched'
end

local function list_of_ids(text)
  local ok, ids = pcall(cjson.decode, text or '[]')
  if not ok or type(ids) ~= 'table' then return {} end
  local legal = {}
  for _, id in ipairs(ids) do
    if legal_id(id) then legal[#legal + 1] = id end
  end
  return legal
end

-- The job that an entry of a pending set names.
local function prerequisite_of(entry)
  return string.sub(entry, 1, 1) == ANY and string.sub(entry, 2) or entry
end

-- Lets a prerequisite know of a job that waits for it.
local function note_dependent(prerequisite, id)
  local key = JOB .. prerequisite
  if redis.call('HSTRLEN', key, 'dependents') >= DEPENDENTS_FIELD_BYTES then
    redis.call('RPUSH', DEPENDENTS .. prerequisite, id)
    redis.pcall('HINCRBY', key, 'dependents_more', 1)
    return
  end
  local known = redis.call('HGET', key, 'dependents')
  local entry = '"' .. id .. '"'
  local list = '[' .. entry .. ']'
  if known and string.match(known, '^%[".*"%]$') then
    list = string.sub(known, 1, -2) .. ',' .. entry .. ']'
  end
  redis.call('HSET', key, 'dependents', list)
end

-- Makes a job wait for others, and each of them know of it. `pending` are entries of its pending
-- set: ids, with ANY before those that only have to end.
local function add_dependent(id, pending)
  -- Lua hands on no more than some thousand values at once.
  for first = 1, #pending, 1000 do
    redis.call('SADD', PENDING .. id, unpack(pending, first, math.min(first + 999, #pending)))
  end
  for _, entry in ipairs(pending) do note_dependent(prerequisite_of(entry), id) end
end

-- Microseconds since the epoch of an RFC 3339 time, whole seconds or with a fraction, in UTC or
-- with an offset; what is beyond milliseconds is cut off. 0 for anything else.
local function microseconds(text)
  local y, mo, d, h, mi, s, fraction, zone = string.match(text or '',
    '^(%d%d%d%d)-(%d%d)-(%d%d)[Tt](%d%d):(%d%d):(%d%d)(%.?%d*)([Zz+-][%d:]*)$')
  if not y then return 0 end
  local sign, offset_h, offset_mi = string.match(zone, '^([+-])(%d%d):?(%d%d)$')
  if not sign and string.upper(zone) ~= 'Z' then return 0 end
  local ms = string.sub(string.gsub(fraction, '%.', '') .. '000', 1, 3)
  y, mo, d = tonumber(y), tonumber(mo), tonumber(d)
  if mo <= 2 then y, mo = y - 1, mo + 12 end
  local days = 365 * y + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400)
    + math.floor((153 * (mo - 3) + 2) / 5) + d - 1 - 719468
  local ahead_s = sign and ((sign == '-' and -1 or 1) * (offset_h * 3600 + offset_mi * 60)) or 0
  return ((days * 86400 + h * 3600 + mi * 60 + s - ahead_s) * 1000 + ms) * 1000
end

-- Leaves to the supervisor those of a job's dependents that were not told: with all that it takes
-- to tell them, for the job may be deleted, or run again, before their turn comes.
local function settle_later(ended, dependents, from, list)
  local left = {}
  for place = from, #dependents do left[#left + 1] = dependents[place] end
  if #left > 0 or list then
    local entry = { id = ended.id, status = ended.status, left = left, list = list }
    redis.call('RPUSH', SETTLING, cjson.encode(entry))
  end
end

-- Takes a prerequisite that has ended off what a job waits for. Returns whether it was there, and
-- whether the job cannot run any more.
local function no_longer_pending(id, prerequisite, outcome)
  if outcome == 'finished' then
    return redis.call('SREM', PENDING .. id, prerequisite, ANY .. prerequisite) > 0, false
  end
  if redis.call('SREM', PENDING .. id, prerequisite) == 1 then return true, true end
  return redis.call('SREM', PENDING .. id, ANY .. prerequisite) == 1, false
end

-- Lets a dependent know that its prerequisite has ended. Returns its own dependents if it failed.
local function tell(id, prerequisite, outcome, at, retention)
  local waited, in_vain = no_longer_pending(id, prerequisite, outcome)
  if not waited then return nil end
  local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'run_at',
    'reply', 'unique_key', 'dependents', 'retention')
  local job = {
    script_type = legal_type(f[2]), reply = f[7], unique_key = f[8], retention = f[10] }
  local queue = queue_of(f[2], f[3], f[4], f[5])
  if f[1] ~= 'waiting_for_prerequisites' or not queue then return nil end
  if in_vain then
    redis.call('DEL', PENDING .. id)
    redis.call('ZREM', index_of('waiting_for_prerequisites', job.script_type), id)
    conclude(id, job, 'error', 'prerequisite failed: ' .. prerequisite, nil, at, retention)
    return present(f[9])
  end
  if redis.call('SCARD', PENDING .. id) == 0 then
    redis.call('ZREM', index_of('waiting_for_prerequisites', job.script_type), id)
    redis.call('HSET', JOB .. id, 'updated_at', rfc3339(at))
    release(id, queue, microseconds(f[6]), at)
  end
  return nil
end

-- The list of those dependents of a job for which its field has no room, under a name that no job
-- to come can have: those that wait for the job's next run are others. Nil if there is none.
local function detached_list(ended, at)
  -- Only behind a full field there is one.
  if #(ended.dependents or '') < DEPENDENTS_FIELD_BYTES then return nil end
  local list = ended.id .. ':' .. integer(at)
  local moved = redis.pcall('RENAME', DEPENDENTS .. ended.id, DEPENDENTS .. list)
  return not moved.err and list or nil
end

-- Tells the dependents of ended jobs, and theirs in turn: a list of {id, status, dependents} to
-- begin with. What exceeds one step's share is left to the supervisor, with nothing told twice: a
-- dependent counts a prerequisite only while it is still in its pending set.
local function tell_dependents(ended, at, retention)
  local budget = DEPENDENTS_PER_STEP
  local turn = 1
  while ended[turn] do
    local own = ended[turn]
    local dependents = own.left or list_of_ids(own.dependents)
    local list = own.list or detached_list(own, at)
    local place = 1
    while true do
      if place > #dependents and list then
        if budget <= 0 then break end
        dependents, place = redis.call('LPOP', DEPENDENTS .. list, budget) or {}, 1
        if #dependents == 0 then list = nil end
      end
      local id = dependents[place]
      if not id or budget <= 0 then break end
      budget = budget - 1
      place = place + 1
      local theirs = tell(id, own.id, own.status, at, retention)
      if theirs then ended[#ended + 1] = { id = id, status = 'error', dependents = theirs } end
    end
    settle_later(own, dependents, place, list)
    turn = turn + 1
  end
end

-- A foreign actor has taken a job: it stands in the index of `started` by when to look at it next.
local function note_foreign_start(id, script_type, at)
  redis.call('HDEL', JOB .. id, 'boot_id')
  if not present(read(id, 'started_at')[1]) then
    redis.call('HSET', JOB .. id, 'started_at', rfc3339(at))
  end
  if enter('started', script_type, id, at) == 1 then
    count(script_type, 'started')
    moving(id, 'started', script_type)
  end
end

-- Whether it is known that a job has ended: it expires, or stands in the index of its end.
local function is_end_known(id, status, script_type)
  return redis.call('PTTL', JOB .. id) >= 0
    or redis.call('ZSCORE', index_of(status, script_type), id)
end

-- A foreign actor has ended a job by writing its hash: what else belongs to an end follows.
local function note_foreign_end(id, script_type, at, retention)
  local f = read(id, 'status', 'unique_key', 'dependents', 'retention', 'output', 'error', 'legacy',
    'reply')
  if is_end_known(id, f[1], script_type) then return end
  moving(id, f[1], script_type)
  enter(f[1], script_type, id, at + keep(id, f[4], retention) * 1000)
  count(script_type, f[1] == 'finished' and 'finished' or 'failed')
  release_unique(id, f[2])
  local text = (f[1] == 'finished' and f[5] or f[6]) or ''
  -- An old worker replies only in its own spelling, if at all.
  if LEGACY and f[7] and f[8] ~= '0' then
    if redis.call('EXISTS', REPLY .. id) == 0 then push_reply(id, f[1], text) end
    if redis.call('EXISTS', LEGACY_REPLY .. id) == 0 then reply_to_legacy(id, text) end
  end
  if string.sub(id, 1, #TASK_JOB) == TASK_JOB then answer_task_of(id, f[1], text, rfc3339(at)) end
  if present(f[3]) then
    tell_dependents({ { id = id, status = f[1], dependents = f[3] } }, at, retention)
  end
end
