-- Hands control messages for a type, or for a group of it, to each of its live actors. Without one, a stop is
-- done here. Where a foreign program serves the type as well, the messages stay in the list for it, for a
-- minute; MARKS holds those that were handed on.
--
-- ARGV: 1 lease in ms, within which an actor counts as live  2 limit on messages
--       3 'unsupervised' to do nothing while a supervisor is live, or ''  4 retention, for jobs that are stopped
--       5... the types; none for those that are known
-- returns { messages that were handed on, lists where messages stay }
-- needs: wrong_type time names job sweep control foreign_actors
-- rarely: stop_job

local LEFT_FOR_S = 60
local at = now_us()
local handed_on, left_for_others = 0, 0

-- Returns how many messages at the head of the list are the last of those before: programs take from the
-- head and append.
local function number_left(messages, before)
  for number = math.min(#messages, #before), 1, -1 do
    local is_left = true
    for place = 1, number do
      is_left = is_left and messages[place] == before[#before - number + place]
    end
    if is_left then return number end
  end
  return 0
end

-- The `messages` that were not handed on before.
local function not_handed_on(messages, mark)
  local ok, before = pcall(cjson.decode, redis.call('HGET', MARKS, mark) or '')
  if not ok or type(before) ~= 'table' then return messages end
  local left = number_left(messages, before)
  if left > 0 then return { unpack(messages, left + 1) } end
  -- Other programs push to the head.
  local times, news = {}, {}
  for _, message in ipairs(before) do times[message] = (times[message] or 0) + 1 end
  for _, message in ipairs(messages) do
    if (times[message] or 0) > 0 then
      times[message] = times[message] - 1
    else
      news[#news + 1] = message
    end
  end
  return news
end

-- Returns the job that a message stops, if it does.
local function job_to_stop(message)
  local id = string.match(message, '^%s*([%w_-]+)%s*$')
  if id then return not CONTROL_WORDS[id] and id or nil end
  local ok, order = pcall(cjson.decode, message)
  if not ok or type(order) ~= 'table' or order.cmd ~= 'stop' then return nil end
  return type(order.job_id) == 'string' and string.match(order.job_id, '^[%w_-]+$')
end

-- Marks the running jobs of a type, or of a group of it, that messages stop, so that no death of their actor makes them
-- run again.
local function mark_stops(messages, script_type, group)
  for _, message in ipairs(messages) do
    local id = job_to_stop(message)
    local f = id and read(id, 'status', 'script_type', 'group') or {}
    local is_of = string.lower(f[2] or '') == script_type and (not group or (present(f[3]) or 'default') == group)
    if f[1] == 'started' and is_of then redis.call('HSET', JOB .. id, 'stop_requested', '1') end
  end
end

-- Stops the jobs that messages without a reader name.
local function stop_jobs(messages)
  for _, message in ipairs(messages) do
    local id = job_to_stop(message)
    if id then rarely().stop_job({ id, ARGV[4], cjson.encode({ cmd = 'stop', job_id = id }), '' }) end
  end
end

-- Hands on the messages for a type or group: TYPE, TYPE:group:GROUP.
local function hand_on(name, most)
  local list, mark = CONTROL .. name, 'control ' .. name
  local messages = redis.pcall('LRANGE', list, 0, most - 1)
  if messages.err then return 0 end
  if #messages == 0 then
    redis.call('HDEL', MARKS, mark)
    return 0
  end
  local script_type, group = string.match(name, '^([^:]+):group:(.+)$')
  script_type = script_type or name
  local news, told = not_handed_on(messages, mark), 0
  if #news > 0 then
    mark_stops(news, script_type, group)
    told = tell_actors_of(script_type, group, news, at, tonumber(ARGV[1]) * 1000)
  end
  if #foreign_actors_of(script_type, group) == 0 then
    if told == 0 then stop_jobs(news) end
    redis.call('LTRIM', list, #messages, -1)
    redis.call('HDEL', MARKS, mark)
  else
    left_for_others = left_for_others + 1
    if #news > 0 then
      redis.call('HSET', MARKS, mark, cjson.encode(messages))
      redis.call('EXPIRE', list, LEFT_FOR_S)
    end
  end
  return #news
end

if ARGV[3] == 'unsupervised' and is_supervised(at) then return { 0, 0 } end
local types = { unpack(ARGV, 5) }
if #types == 0 then types = some_types(at) end
for _, name in ipairs(told_together(types)) do
  local left = tonumber(ARGV[2]) - handed_on
  if left > 0 then handed_on = handed_on + hand_on(name, left) end
end
return { handed_on, left_for_others }
