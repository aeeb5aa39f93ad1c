-- A part of claim.lua: a claim under limits. Jobs that have to wait are held; see limits.lua.
--
-- ARGV: type, actor and at of the claim; jobs, those that it has claimed so far; limits, those of the
--       configuration
-- returns { is_held, take_places }

-- Held jobs that one limit lets go on at the most.
local RELEASED_MAX = 1000

local own_type, at, jobs, limits = ARGV.type, ARGV.at, ARGV.jobs, ARGV.limits
local lane = '@' .. string.gsub(ARGV.actor, ':', '/')
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
  for _, id in ipairs(release_held(limit.name, math.min(number, RELEASED_MAX), at)) do
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

local LIMITED_BY = { script_type = true, group = true, instance = true, priority = true,
  caller_id = true, limit_key = true, concurrent = true, held_by = true }
local function limited_by(hash)
  local job = {}
  for i = 1, #hash, 2 do
    if LIMITED_BY[hash[i]] then job[hash[i]] = hash[i + 1] end
  end
  return job
end

-- Whether a job with this hash, of which the list holds an entry, has to wait for one of its limits,
-- and if not, all of them.
local function is_held(id, hash, list)
  local job = limited_by(hash)
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

return { is_held = is_held, take_places = take_places }
