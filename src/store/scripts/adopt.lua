-- Adopts the entries of a list that programs pushed with plain commands: each becomes a job like any other, or
-- leaves the list. The queue of a job is the list's queue, also if its fields name another.
--
-- The ready index keeps the order of its list: the repair of foreign pops relies on it. So a job gets the
-- score of the next entry after it that has one.
--
-- KEYS: 1 the list
-- ARGV: 1 limit on entries  2 retention  3 '1' if an ended job runs again when its id is pushed
--       4 time after an end in ms within which a push does not run the job again
-- returns { adopted, entries removed, next, entries, again }
--       next     1 if there is more to adopt: call again at once; 2 if an old worker may be about to start
--                some: call again after a moment; else 0
--       entries  some that are no jobs: id, reason, …
--       again    ids of jobs that had ended and run again
-- needs: wrong_type time names routing job owner sweep counters index legacy queue wake unindexed adopt_place
-- rarely: where foreign_start pushed_again adopt_legacy

local list, window, retention, runs_again = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local repeat_us = tonumber(ARGV[4]) * 1000
local at = now_us()
local adopted, removed, is_later, told, again = 0, 0, false, {}, {}

local function answer(is_more)
  write_counts()
  return { adopted, removed, is_more and 1 or is_later and 2 or 0, told, again }
end

-- Notes a list that nobody serves, up to a number of them, so that a person is told.
local function note_unserved()
  local NOTED_MAX = 256
  local number = redis.pcall('HLEN', OLDER)
  -- An actor may not be permitted to; a supervisor is.
  if type(number) ~= 'number' then return false end
  for _, noted in ipairs(number >= NOTED_MAX and redis.call('HKEYS', OLDER) or {}) do
    if redis.pcall('EXISTS', noted) == 0 then number = number - redis.call('HDEL', OLDER, noted) end
  end
  return number < NOTED_MAX and redis.pcall('HSETNX', OLDER, list, integer(at)) == 1
end

-- Counts an entry that is no job, and tells why.
local function skip(id, script_type, why)
  count(script_type, 'skipped')
  if #told < 16 then
    told[#told + 1] = string.sub(id, 1, 64)
    told[#told + 1] = why
  end
  return 'gone'
end

local function counted(outcome, is_adopted)
  if is_adopted then adopted = adopted + 1 end
  return outcome
end

local NO_SUCH_JOB = 'no such job'
local read_fields
do
  local READ_FIELDS = { 'status', 'script_type', 'group', 'instance', 'priority', 'legacy', 'prerequisites', 'dependencies', 'after_any', 'run_at', 'unique_key', 'unique_scope', 'retention', 'reply', 'dependents',
    'boot_id', 'adopt_after', 'where' }

  -- Reads the fields that decide, by name; an empty one counts as absent. Nil, and why, if there is no such job.
  function read_fields(id)
    local values, f = read(id, unpack(READ_FIELDS)), {}
    if #values == 0 then return nil, 'its key is no hash' end
    for number, name in ipairs(READ_FIELDS) do f[name] = present(values[number]) end
    if not f.status and redis.call('EXISTS', JOB .. id) == 0 then return nil, NO_SUCH_JOB end
    -- An empty one says that its copy was given up.
    f.legacy = values[6] or nil
    return f
  end
end

-- Runs an ended job again, if its id was pushed for that.
local function push_again(id, status, script_type, queue)
  if not runs_again then return skip(id, script_type, 'its status is ' .. status) end
  local why_not = rarely().run_again(id, redis.call('HGETALL', JOB .. id), queue, script_type, at, repeat_us)
  if why_not then return skip(id, script_type, why_not) end
  again[#again + 1] = id
  adopted = adopted + 1
  return 'ready'
end

local decide
do
  -- Tells if a job stands where its fields say: a program has pushed the id of a job that waits.
  local function stands_elsewhere(id, status, own, queue)
    if status ~= 'dispatched' then return redis.call('ZSCORE', index_of(status, type_of_queue(own)), id) end
    return own ~= queue and redis.call('ZSCORE', READY .. own, id) or redis.call('ZSCORE', HELD .. own, id)
  end

  -- The fields that name a queue, each with the check of its value.
  local PARTS = { script_type = legal_type, group = function(value) return queue_of('any', value) end,
    instance = function(value) return queue_of('any', nil, value) end,
    priority = function(value) return queue_of('any', nil, nil, value) end }

  -- Decides about an entry without a ready entry: it is 'ready', or for 'later', or 'gone' from the list.
  function decide(id, of, queue)
    if not legal_id(id) then return skip(id, of.script_type, 'no legal id') end
    local f, why_not = read_fields(id)
    if not f then
      -- A program may write the hash after the push.
      if why_not == NO_SUCH_JOB then note_unindexed(list .. ' ' .. id, at) end
      return skip(id, of.script_type, why_not)
    end
    local status = f.status or 'dispatched'
    if status == 'finished' or status == 'error' then return push_again(id, status, of.script_type, queue) end
    if status == 'started' then
      if not is_ours(id, f.boot_id) then rarely().note_foreign_start(id, of.script_type, at) end
      return skip(id, of.script_type, 'its status is started')
    end
    local own = queue_of(f.script_type, f.group, f.instance, f.priority, f.where)
    if own and stands_elsewhere(id, status, own, queue) then
      return skip(id, of.script_type, 'it waits already: its status is ' .. status)
    end
    if status ~= 'dispatched' then
      f.script_type = of.script_type
      count(of.script_type, 'submitted')
      local shown = string.gsub(string.sub(status, 1, 32), '[^\32-\126]', '?')
      return end_adopted(id, f, 'invalid job: status: `' .. shown .. '` is not the status of a job that is pushed; write `dispatched`', at, retention)
    end
    if not f.status then redis.call('HSET', JOB .. id, 'status', status) end
    if f.where or of.digest then return counted(place_by_where(id, f, of, queue, at, retention)) end
    for name in pairs(PARTS) do
      local is_legal = PARTS[name]
      -- For an illegal value the actor rejects the job.
      if own ~= queue and f[name] ~= of[name] and (not f[name] or is_legal(f[name])) then
        if of[name] then redis.call('HSET', JOB .. id, name, of[name]) else redis.call('HDEL', JOB .. id, name) end
      end
    end
    f.script_type = of.script_type
    if LEGACY and rarely().may_be_with_old_worker(id, f, queue, at) then
      is_later = true
      return 'later'
    end
    return counted(place_adopted(id, f, at, retention))
  end
end

local look_at
do
  -- Returns the score for entries with no scored one after them here: the score of the first ready entry
  -- after them in the list. Nil if it is unknown.
  local function score_behind(main, ready, first, last_score)
    if not last_score and first > 0 then
      local before = redis.call('LINDEX', main, first - 1)
      last_score = before and tonumber(redis.call('ZSCORE', ready, before) or nil)
      if not last_score then return nil end
    end
    local from = last_score and '(' .. integer(last_score) or '-inf'
    local next_one = redis.call('ZRANGEBYSCORE', ready, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    return next_one[2] and tonumber(next_one[2]) or at
  end

  -- Adopts in a window of a list, which begins at a place.
  function look_at(main, ready, first, of, queue)
    local ids = redis.call('LRANGE', main, first, first + window - 1)
    if #ids == 0 then return end
    local scores, last_score, outcomes, seen = redis.call('ZMSCORE', ready, unpack(ids)), nil, {}, {}
    for number, id in ipairs(ids) do
      if seen[id] then
        outcomes[number] = 'again'
        count(of.script_type, 'skipped')
      end
      seen[id] = true
      if scores[number] and not outcomes[number] then last_score = tonumber(scores[number]) end
    end
    local behind = score_behind(main, ready, first, last_score)
    if not behind then return end
    -- In the order of the list, since the first job gets a unique key.
    for number, id in ipairs(ids) do
      if not scores[number] and not outcomes[number] then outcomes[number] = decide(id, of, queue) end
    end
    local entries = {}
    for number = #ids, 1, -1 do
      local id, outcome, score = ids[number], outcomes[number], tonumber(scores[number] or nil)
      if outcome == 'gone' or outcome == 'again' then
        -- Of several copies the first stays.
        redis.call('LREM', main, (first > 0 or outcome == 'again') and -1 or 1, id)
        removed = removed + 1
      elseif outcome == 'ready' or score and score > behind then
        entries[#entries + 1] = integer(behind)
        entries[#entries + 1] = id
      elseif score then
        behind = score
      end
    end
    if #entries > 0 then
      redis.call('ZADD', ready, unpack(entries))
      register(TYPES, of.script_type)
      register(QUEUES, queue)
      if of.digest then rarely().note_where(queue, entries[2], at) end
      wake(queue)
    end
  end
end

-- Readers of old read a second spelling of the normal priority. Its entries move to the list of the queue.
local function take_from_other_spelling(main, of, queue)
  local ids = redis.call('LRANGE', list, 0, window - 1)
  for _, id in ipairs(ids) do
    local outcome = redis.call('ZSCORE', READY .. queue, id) and 'gone' or decide(id, of, queue)
    if outcome == 'later' then return true end
    redis.call('LPOP', list)
    removed = removed + 1
    if outcome == 'ready' then push_back(id, queue, at) end
  end
  return #ids == window
end

local kind = redis.pcall('TYPE', list)
if kind.ok and kind.ok ~= 'list' then return answer() end
despite_full_memory()
if string.sub(list, 1, #WORK) ~= WORK then
  if LEGACY and legacy_queue(list) then
    local more = rarely().adopt_legacy({ list = list, window = window, at = at, skip = skip,
      push_again = push_again, count_adopted = function() adopted = adopted + 1 end })
    return answer(more)
  end
  -- A list that a pattern stands for is served from now on.
  return answer(note_unserved() and LEGACY)
end
local queue = queue_of_list(list)
local main, ready = WORK .. queue, READY .. queue
local of = parts_of_queue(queue)
of.script_type = type_of_queue(queue)
if queue_of_parts(of.script_type, of.group, of.instance, of.priority, of.digest) ~= queue then
  note_unserved()
  return answer()
end
if list ~= main then return answer(take_from_other_spelling(main, of, queue)) end
local function unadopted() return redis.call('LLEN', main) - redis.call('ZCARD', ready) end
if unadopted() <= 0 or has_wrong_type[ready] then return answer() end
-- Those that a claim would meet first; those at the end, where most programs push; or else a window that
-- moves with each call.
look_at(main, ready, 0, of, queue)
do
  local length = redis.call('LLEN', main)
  if length > window and unadopted() > 0 then
    look_at(main, ready, math.max(length - unadopted(), window), of, queue)
    if adopted + removed == 0 then
      local mark = 'adopt ' .. queue
      local from = tonumber(redis.call('HGET', MARKS, mark) or '') or window
      if from >= length then from = window end
      look_at(main, ready, from, of, queue)
      redis.call('HSET', MARKS, mark, from + window)
    end
  end
end
return answer(adopted + removed > 0 and unadopted() > 0)
