-- Legacy queues. LEGACY is false, or a list of those that are served. A pattern in it is replaced by
-- the queues that a supervisor has found.
--
-- The field `legacy` of a job is the legacy queue that holds its copy, or empty once the copy was
-- given up. Old workers know no states and run every id that they pop. So the copy is the right to
-- run the job: a claim removes it, and if it is gone an old worker has the job.
-- needs: routing

-- A job is removed from a queue up to this length; from a longer one the claim skips it.
local SEARCHED_QUEUE_LEN = 1000

local function is_legacy_queue(list)
  if type(list) ~= 'string' or #list > 256 then return false end
  local name
  for _, prefix in ipairs({ LEGACY_WORK, JOB .. 'actor_queue:', JOB }) do
    if not name and string.sub(list, 1, #prefix) == prefix then
      name = string.sub(list, #prefix + 1)
    end
  end
  return name and string.match(name, '^[A-Za-z0-9_.@:-]+$') ~= nil
end

-- The legacy queues that stand for the patterns.
local function found_queues(patterns, named)
  if #patterns == 0 then return end
  for _, list in ipairs(redis.call('HKEYS', OLDER)) do
    for _, pattern in ipairs(not named[list] and is_legacy_queue(list) and patterns or {}) do
      if string.match(list, pattern.match) then
        LEGACY[#LEGACY + 1] = { list = list, type = pattern.type, group = pattern.group,
          instance = pattern.instance, is_found = true }
        break
      end
    end
  end
end

if LEGACY then
  local configured, patterns, named = LEGACY, {}, {}
  LEGACY = {}
  for _, queue in ipairs(configured) do
    if queue.match then
      patterns[#patterns + 1] = queue
    else
      LEGACY[#LEGACY + 1] = queue
      named[queue.list] = true
    end
  end
  found_queues(patterns, named)
end

-- Removes the copy of a job from its legacy queue. False if it is gone: an old worker has the job.
-- A key that is no list has no copies.
local function remove_copy(id, list)
  if not is_legacy_queue(list) then return true end
  local removed = redis.pcall('LREM', list, 1, id)
  return type(removed) ~= 'number' or removed > 0
end

-- Creating a function costs time in every call, so these exist only if legacy queues are served.
local legacy_queue, legacy_queues_of, copy_to_legacy, withdraw_copies
local note_seen, reply_to_legacy, tell_old_worker
if LEGACY then
  local LEGACY_REPLY_TTL_S = 60
  -- The entries of a legacy queue among which a copy of unknown place is looked for.
  local SEARCHED_ENTRIES = 10000
  -- The configuration of a legacy queue that is served.
  function legacy_queue(list)
    for _, queue in ipairs(LEGACY) do
      if queue.list == list then return queue end
    end
    return nil
  end

  -- The legacy queues whose workers may run the jobs of a queue.
  local candidates = {}
  function legacy_queues_of(queue)
    local found = candidates[queue]
    if found then return found end
    found = {}
    candidates[queue] = found
    local script_type, of = type_of_queue(queue), parts_of_queue(queue)
    -- Old workers have no labels.
    for _, legacy in ipairs(of.digest and {} or LEGACY) do
      if legacy.type == script_type and (not of.group or legacy.group == of.group)
          and (not of.instance or legacy.instance == of.instance) then
        found[#found + 1] = legacy.list
      end
    end
    return found
  end

  -- The legacy queue for a job of a queue, the shortest if there are several.
  local lengths = {}
  local function legacy_list_of(queue)
    local found = legacy_queues_of(queue)
    if #found < 2 then return found[1] end
    local best
    for _, list in ipairs(found) do
      if not lengths[list] then
        local length = redis.pcall('LLEN', list)
        lengths[list] = type(length) == 'number' and length or math.huge
      end
      if not best or lengths[list] < lengths[best] then best = list end
    end
    lengths[best] = lengths[best] + 1
    return best
  end

  -- Puts the copy of a job into its legacy queue, if it has one.
  function copy_to_legacy(id, queue, to_front)
    local list = legacy_list_of(queue)
    if not list then
      redis.call('HDEL', JOB .. id, 'legacy')
      return
    end
    -- Older programs read the id from the hash.
    redis.call('HSET', JOB .. id, 'legacy', list, 'id', id)
    redis.pcall(to_front and 'LPUSH' or 'RPUSH', list, id)
  end

  -- Removes the copies of a job that a foreign program pushed to legacy queues too. Returns nil if
  -- its type has no legacy queue, else whether one had a copy.
  function withdraw_copies(id, script_type)
    local found
    for _, queue in ipairs(LEGACY) do
      if queue.type == script_type then
        found = found or false
        local place = redis.pcall('LPOS', queue.list, id, 'MAXLEN', SEARCHED_ENTRIES)
        if type(place) == 'number' then
          redis.call('LREM', queue.list, 1, id)
          found = true
        end
      end
    end
    return found
  end

  -- Notes that a program was seen to use a legacy queue.
  function note_seen(list, what, at)
    if legacy_queue(list) then
      redis.call('HSET', SEEN .. list, what, string.format('%.0f', math.floor(at / 1000)))
    end
  end

  -- The reply as older clients expect it: the bare output or error.
  function reply_to_legacy(id, text)
    if not redis.call('HGET', JOB .. id, 'legacy') then return end
    redis.pcall('RPUSH', LEGACY_REPLY .. id, text)
    redis.pcall('EXPIRE', LEGACY_REPLY .. id, LEGACY_REPLY_TTL_S)
  end

  -- Tells the worker of a legacy queue to stop a job.
  function tell_old_worker(id, list)
    if not is_legacy_queue(list) then return false end
    local worker = string.sub(list, 1, #LEGACY_WORK) == LEGACY_WORK and string.sub(list, #LEGACY_WORK + 1)
      or string.gsub(string.sub(list, #JOB + 1), '^actor_queue:', '')
    local stops = LEGACY_STOP .. worker
    if not redis.pcall('LPOS', stops, id) then redis.pcall('LPUSH', stops, id) end
    redis.call('HSET', JOB .. id, 'stop_requested', '1')
    return true
  end
end
