-- Claims jobs under limits.
-- needs: wrong_type time names routing counters index leave limits windows fair wake job

-- Held jobs that one claim releases.
local RELEASED_MAX = 100

-- Returns { is_held, take_slots, choose, wake_others } for a claim: its type, actor and at; jobs, the jobs claimed so far;
-- limits, the limits of the configuration; rules, the key of those by a caller or key, if it is not nil.
local function claim_under_limits(claim)
  local own_type, at, jobs, limits = claim.type, claim.at, claim.jobs, claim.limits
  local lane = '@' .. string.gsub(claim.actor, ':', '/')
  -- Held jobs that this claim has released and not met yet: they have a slot.
  local released, released_number = {}, {}
  local may_release = RELEASED_MAX

  -- The suffix of a limit that counts separately; long or unusual values are hashed.
  local function suffix(value)
    if #value <= 64 and string.match(value, '^[A-Za-z0-9_.@/-]+$') then return '=' .. value end
    return '#' .. redis.sha1hex(value)
  end

  -- The limits of the configuration that select by this caller or key.
  local known_rules = {}
  local function rules_of(kind, value)
    if not claim.rules or not value then return {} end
    local field = kind .. ' ' .. value
    if not known_rules[field] then
      known_rules[field] = json_table(redis.call('HGET', claim.rules, field)) or {}
    end
    return known_rules[field]
  end

  -- The limits of a job.
  local function limits_of(id, job, window)
    local of = {}
    local pause = window and window.pause
    if pause and not string.find(' ' .. pause.first .. ' ', ' ' .. id .. ' ', 1, true) then of[1] = pause end
    if window and window.running then of[#of + 1] = window end
    if says_no(job.concurrent) then of[#of + 1] = { name = lane, running = 1 } end
    local group, caller = present(job.group) or 'default', job.caller_id or ''
    local key = present(job.limit_key)
    local sharers = { caller = caller, key = key, context = job.context_id, group = group }
    local function add(limit)
      if (not limit.type or limit.type == own_type) and (not limit.group or limit.group == group)
        and (not limit.caller or limit.caller == caller) and (not limit.key or limit.key == key) then
        local per = { type = own_type, group = own_type .. '/' .. group, caller = caller, key = key }
        local value = limit.per and per[limit.per]
        if not limit.per or value then
          local sharer = limit.fair and (sharers[limit.fair] or '')
          local weights = limit.weights or {}
          of[#of + 1] = { name = limit.name .. (value and suffix(value) or ''),
            running = limit.running, rate = limit.rate, period_us = limit.period_us,
            sharer = sharer and suffix(sharer), weight = sharer and (weights[sharer] or weights['*'] or 1) }
        end
      end
    end
    for _, limit in ipairs(limits) do add(limit) end
    for _, limit in ipairs(rules_of('caller', caller)) do add(limit) end
    for _, limit in ipairs(rules_of('key', key)) do add(limit) end
    return of
  end

  -- Returns how many jobs of a limit may start now, and when to look again if none may.
  local function free_slots(limit)
    local free, look = math.huge, next_probe(at)
    if limit.left then free = limit.left end
    if limit.running then free = limit.running - redis.call('ZCARD', LIMIT_RUNNING .. limit.name) end
    if limit.rate then
      local starts = LIMIT_STARTS .. limit.name
      redis.call('ZREMRANGEBYSCORE', starts, '-inf', integer(at - limit.period_us))
      -- Starts of the future were before the clock was set back.
      redis.call('ZREMRANGEBYSCORE', starts, '(' .. integer(at), '+inf')
      local left = limit.rate - redis.call('ZCARD', starts)
      if left <= 0 and free > 0 then
        look = tonumber(redis.call('ZRANGE', starts, 0, 0, 'WITHSCORES')[2]) + limit.period_us
      end
      free = math.min(free, left)
    end
    return free - (released_number[limit.name] or 0), look
  end

  local function release(limit, number)
    local ids = release_held(limit.name, math.min(number, may_release), at)
    may_release = may_release - #ids
    for _, id in ipairs(ids) do
      released[id] = limit.name
      released_number[limit.name] = (released_number[limit.name] or 0) + 1
    end
  end

  -- Tells if a sweep could find the job again. If not, the limit does not apply.
  local function can_hold(queue, limit)
    local keys = { HELD .. queue, LIMIT_HELD .. limit, LIMITS }
    for _, key in ipairs(keys) do redis.call('ZCARD', key) end
    return not (has_wrong_type[keys[1]] or has_wrong_type[keys[2]] or has_wrong_type[keys[3]])
  end

  local function place_of(id, queue, limit, score)
    if limit.sharer then return fair_place(limit, id, queue) end
    return held_score(queue, score)
  end

  local function hold(id, queue, limit, score, look)
    local place, share = place_of(id, queue, limit, score)
    if limit.sharer then hold_fairly(limit, id, share) end
    redis.call('ZREM', READY .. queue, id)
    redis.call('ZADD', HELD .. queue, integer(score), id)
    redis.call('ZADD', LIMIT_HELD .. limit.name, integer(place), queue .. ' ' .. id)
    redis.call('ZADD', LIMITS, integer(look), limit.name)
    redis.call('HDEL', LIMIT_PROBES, limit.name)
    redis.call('HSET', JOB .. id, 'held_by', limit.name)
    register(QUEUES, queue)
    count(own_type, 'held')
  end

  local LIMITED_BY = { script_type = true, group = true, instance = true, priority = true,
    where = true, caller_id = true, context_id = true, limit_key = true, concurrent = true, held_by = true,
    status = true, legacy = true }
  local function limited_by(hash)
    local job = {}
    for i = 1, #hash, 2 do
      if LIMITED_BY[hash[i]] then job[hash[i]] = hash[i + 1] end
    end
    return job
  end

  -- Holds a job if one of its limits has no slot for it. Returns true, or false and its limits.
  local function is_held(id, hash, list, window)
    local job = limited_by(hash)
    local of = limits_of(id, job, window)
    if #of == 0 then return false, of end
    local queue = queue_of(present(job.script_type) or own_type, job.group, job.instance, job.priority, job.where)
    -- The actor rejects an illegal job, which takes no time.
    if not queue then return false, {} end
    local met = released[id]
    if met then
      released[id] = nil
      released_number[met] = released_number[met] - 1
    end
    local score = redis.call('ZSCORE', READY .. queue, id) or redis.call('ZSCORE', HELD .. queue, id)
    score = tonumber(score) or at + #jobs
    redis.call('ZREM', READY .. queue_of_list(list), id)
    -- A second copy of a held job.
    if job.held_by then stop_holding(id, queue) end
    for _, limit in ipairs(of) do
      local free, look = free_slots(limit)
      local first = free > 0 and redis.call('ZRANGE', LIMIT_HELD .. limit.name, 0, 0, 'WITHSCORES')[2]
      -- No job overtakes one of its priority that has waited for longer, or that is before it under a fair limit.
      local is_behind = first and tonumber(first) < (place_of(id, queue, limit, score))
      if (free <= 0 or is_behind) and can_hold(queue, limit.name) then
        hold(id, queue, limit, score, look)
        if is_behind then release(limit, free) end
        return true
      end
    end
    return false, of
  end

  -- Gives a starting job its slot in each of its limits; if more are free, held jobs are released.
  local function take_slots(id, attempt, of)
    local names = {}
    for _, limit in ipairs(of) do
      if limit.running then
        redis.call('ZADD', LIMIT_RUNNING .. limit.name, integer(at), id)
        names[#names + 1] = limit.name
      end
      if limit.sharer then redis.call('HDEL', LIMIT_FAIR .. limit.name, '@' .. id) end
      if limit.left and limit.left < math.huge then
        limit.left, limit.first = limit.left - 1, string.match(limit.first .. ' ' .. id, '%S.*')
        redis.call('HSET', limit.of_graph, 'first', limit.first)
      end
      if limit.rate then
        redis.call('ZADD', LIMIT_STARTS .. limit.name, integer(at), id .. ' ' .. attempt)
        redis.call('PEXPIRE', LIMIT_STARTS .. limit.name, math.ceil(limit.period_us / 1000))
      end
      if not limit.sharer and redis.call('EXISTS', LIMIT_HELD .. limit.name) == 1 then
        local free, look = free_slots(limit)
        if free > 0 then release(limit, free) end
        redis.call('ZADD', LIMITS, integer(look), limit.name)
      end
    end
    if #names > 0 then redis.call('HSET', JOB .. id, 'limits', table.concat(names, ' ')) end
  end

  -- Holds the jobs of a list that are under a fair limit, up to the first that is under none. Returns true if it left some.
  local function hold_waiting(list, queue)
    local WAITING_PER_STEP = 200
    local ids = redis.call('LRANGE', list, 0, WAITING_PER_STEP - 1)
    for _, id in ipairs(ids) do
      local score = redis.call('ZSCORE', READY .. queue, id)
      local job = score and limited_by(redis.call('HGETALL', JOB .. id)) or {}
      if canonical_status(job.status) ~= 'dispatched' or present(job.legacy) or job.held_by then return false end
      local fair
      for _, limit in ipairs(limits_of(id, job)) do fair = fair or limit.sharer and limit end
      if not fair or not can_hold(queue, fair.name) then return false end
      redis.call('LPOP', list)
      if not present(job.script_type) then redis.call('HSET', JOB .. id, 'script_type', own_type) end
      hold(id, queue, fair, tonumber(score), next_probe(at))
    end
    return #ids == WAITING_PER_STEP
  end

  local function waiting_in(lists)
    local number = 0
    for _, list in ipairs(lists) do number = number + redis.call('LLEN', list) end
    return number
  end

  -- Chooses the next jobs under fair limits: holds all that wait in these lists, and releases as many as are wanted. So the
  -- choice is among all jobs that wait. Returns true if it left some in a list.
  local function choose(lists, wanted)
    local is_left = false
    for _, list in ipairs(lists) do is_left = hold_waiting(list, queue_of_list(list)) or is_left end
    local unheld = waiting_in(lists)
    for _, limit in ipairs(limits) do
      local free = limit.fair and wanted > 0 and free_slots(limit) or 0
      while free > 0 and may_release > 0 and waiting_in(lists) - unheld < wanted do
        local before = may_release
        release(limit, math.min(free, wanted))
        if may_release == before then break end
        free = free_slots(limit)
      end
    end
    return is_left
  end

  -- Wakes other actors of these queues, if jobs wait for a task alone: a list shows none.
  local function wake_others(lists)
    for _, limit in ipairs(limits) do
      if limit.fair and redis.call('EXISTS', LIMIT_HELD .. limit.name) == 1 and free_slots(limit) > 0 then
        for _, list in ipairs(lists) do wake(queue_of_list(list)) end
      end
    end
  end

  return { is_held = is_held, take_slots = take_slots, choose = choose, wake_others = wake_others }
end
