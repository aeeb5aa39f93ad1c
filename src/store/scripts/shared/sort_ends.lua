-- Sorts ended jobs into the indexes of their ends: those that ended under an older version, which has one index for a state.
-- needs: time names job index ends

-- The indexes that are walked one after the other: first jobs get an end, then wrong entries of ends leave.
local WALKED = { 'finished', 'error', 'ended:finished', 'ended:failed', 'ended:cancelled', 'ended:replaced',
  'ended:expired' }

-- Tells if the latest entries of a state, where an older version that runs beside this one adds its own, have their end.
local function are_latest_sorted(status, script_type)
  local latest = 10
  local ids = redis.call('ZREVRANGE', index_of(status, script_type), 0, latest - 1)
  if #ids == 0 then return true end
  for _, id in ipairs(ids) do
    local f = read(id, 'status', 'error')
    if f[1] == status and not redis.call('ZSCORE', index_of('ended:' .. end_of(status, f[2]), script_type), id) then
      return false
    end
  end
  return true
end

-- Returns the number of jobs in a terminal state that have no end, or more than one; where these cancel each other out, 1
-- if one of the latest has none.
local function unsorted(script_type)
  local number = 0
  for status, words in pairs(ENDS) do
    local of_state = redis.call('ZCARD', index_of(status, script_type))
    for _, word in ipairs(words) do
      of_state = of_state - redis.call('ZCARD', index_of('ended:' .. word, script_type))
    end
    number = number + (of_state == 0 and not are_latest_sorted(status, script_type) and 1 or math.abs(of_state))
  end
  return number
end

-- Gives an ended job its end. Returns true if the job is gone, and its entry with it; then 1 if it had no end, else 0.
local function give_end(id, status, script_type, at)
  local f = read(id, 'error', 'finished_at')
  if redis.call('EXISTS', JOB .. id) == 0 then
    redis.call('ZREM', index_of(status, script_type), id)
    leave_ends(status, script_type, id)
    return true, 0
  end
  local ended = microseconds(f[2])
  return false, redis.call('ZADD', index_of('ended:' .. end_of(status, f[1]), script_type), 'NX', integer(ended > 0 and ended or at), id)
end

-- Removes an end that a job does not have. Returns true if it was one.
local function check_end(id, word, script_type)
  local status = word == 'finished' and word or 'error'
  if redis.call('ZSCORE', index_of(status, script_type), id) and end_of(status, read(id, 'error')[1]) == word then
    return false
  end
  redis.call('ZREM', index_of('ended:' .. word, script_type), id)
  return true
end

-- Takes one step: looks at `most` entries of a type. Returns how many entries it looked at, the number of jobs that are unsorted,
-- nil while it walks, and how many jobs got their end.
local function sort_ends(script_type, at, most)
  local field = 'ends ' .. script_type
  local mark = redis.call('HGET', MARKS, field)
  local place, passed = string.match(mark or '1 0', '^([1-7]) (%d+)$')
  place, passed = tonumber(place) or 1, tonumber(passed) or 0
  if not mark and unsorted(script_type) == 0 then return 0, 0, 0 end
  local name = WALKED[place]
  local word = string.match(name, '^ended:(.*)$')
  local ids = redis.call('ZREVRANGE', index_of(name, script_type), integer(passed), integer(passed + most - 1))
  local given = 0
  for _, id in ipairs(ids) do
    local is_gone, added = nil, 0
    if word then is_gone = check_end(id, word, script_type) else is_gone, added = give_end(id, name, script_type, at) end
    given = given + added
    if not is_gone then passed = passed + 1 end
  end
  if #ids < most then place, passed = place + 1, 0 end
  if place > #WALKED then
    redis.call('HDEL', MARKS, field)
    return #ids, unsorted(script_type), given
  end
  redis.call('HSET', MARKS, field, place .. ' ' .. integer(passed))
  return #ids, nil, given
end
