-- Hands control messages for a type to each of its live actors. Where a foreign program serves the type
-- as well, the messages stay in the list for it, for a minute; MARKS holds those that were handed on.
--
-- ARGV: 1 lease in ms, within which an actor counts as live  2 limit on messages
--       3 'unsupervised' to do nothing while a supervisor is live, or ''
--       4... the types; none for those that are known
-- returns { messages that were handed on, types whose messages stay in their lists }
-- needs: wrong_type time sweep control foreign_actors

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

-- Those of `messages` that are not among those that were handed on before.
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

local function hand_on(script_type, most)
  local list, mark = CONTROL .. script_type, 'control ' .. script_type
  local messages = redis.pcall('LRANGE', list, 0, most - 1)
  if messages.err then return 0 end
  if #messages == 0 then
    redis.call('HDEL', MARKS, mark)
    return 0
  end
  local news = not_handed_on(messages, mark)
  if #news > 0 then tell_actors_of(script_type, news, at, tonumber(ARGV[1]) * 1000) end
  if #foreign_actors_of(script_type) == 0 then
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
local types = { unpack(ARGV, 4) }
if #types == 0 then types = some_types(at) end
for _, script_type in ipairs(types) do
  local left = tonumber(ARGV[2]) - handed_on
  if left > 0 then handed_on = handed_on + hand_on(script_type, left) end
end
return { handed_on, left_for_others }
