-- Shortens the waits that a step back of Redis's clock has made longer: those that were counted from a time which is in the
-- future now are counted from now. A time that a person or a program named stays as it is.
--
-- `recover_boots` notices the step. Its mark tells where the walk through the scheduled jobs goes on, so any supervisor continues
-- it: at this score of this script type, after so many jobs of the score, which stay.
--
-- ARGV: 1 limit on entries
-- returns 1 if entries are left: call again
-- needs: wrong_type time names job index sweep

local SLACK_US, limit, at = 1000000, tonumber(ARGV[1]), now_us()
despite_full_memory()

-- Counts the wait of a scheduled job from now: a retry, what its script waits for, a delay, a debounce. Returns true if the job
-- stays where it is.
local function count_anew(id, index, script_type, score)
  local f = read(id, 'status', 'run_at', 'updated_at', 'created_at', 'started_at', 'delayed_since', 'debounced_since', 'wait')
  local ahead = microseconds(present(f[3]) or f[4]) - at
  if f[1] ~= 'scheduled' or ahead <= SLACK_US or not (f[5] or f[6] or f[7]) then return true end
  local due = microseconds(f[2]) - ahead
  redis.call('HSET', JOB .. id, 'run_at', rfc3339(due), 'updated_at', rfc3339(at))
  redis.call('ZADD', index, integer(score - ahead), id)
  if f[8] then redis.call('ZADD', index_of('waits', script_type), integer(due), id) end
end

-- Makes entries due whose next look is in the future, the last first. Returns true if some may be left.
local function make_due(key)
  local entries = redis.call('ZREVRANGEBYSCORE', key, '+inf', '(' .. integer(at + SLACK_US), 'LIMIT', 0, limit)
  for _, entry in ipairs(entries) do redis.call('ZADD', key, integer(at), entry) end
  return #entries == limit
end

-- Messages that gather events are delivered now. One that is taken, or is tried again, by no whole millisecond, waits for no
-- longer than the longest of such waits.
local function shorten_deliveries()
  local LONGEST_US, UNDELIVERED_MAX = 600000000, 1000
  local now = at - at % 1000
  local due = redis.call('ZREVRANGEBYSCORE', NOTIFY_DUE, '+inf', '(' .. integer(at), 'WITHSCORES', 'LIMIT', 0, UNDELIVERED_MAX)
  for place = 1, #due, 2 do
    local score = tonumber(due[place + 1])
    score = score % 1000 == 0 and now or math.min(score, now + LONGEST_US + 1)
    redis.call('ZADD', NOTIFY_DUE, integer(score), due[place])
  end
end

local from, passed, last = string.match(redis.call('HGET', MARKS, 'set_back') or '', '^(%S+) (%d+) ([a-z0-9_]*)$')
if not from then return 0 end
local types, script_type = redis.call('SMEMBERS', TYPES), nil
table.sort(types)
for _, name in ipairs(types) do
  if not script_type and (name > last or name == last and from ~= '+inf') then script_type = name end
end
if not script_type then
  if make_due(LIMITS) then return 1 end
  shorten_deliveries()
  redis.call('HDEL', MARKS, 'set_back')
  return 0
end
if script_type ~= last then
  from, passed = '+inf', 0
  if make_due(index_of('started', script_type)) then return 1 end
end
local index = index_of('scheduled', script_type)
local entries = redis.call('ZREVRANGEBYSCORE', index, from, '(' .. integer(at), 'WITHSCORES', 'LIMIT', passed, limit)
for place = 1, #entries, 2 do
  local id, score = entries[place], entries[place + 1]
  if score ~= from then from, passed = score, 0 end
  if count_anew(id, index, script_type, tonumber(score)) then passed = passed + 1 end
end
if #entries < 2 * limit then from, passed = '+inf', 0 end
redis.call('HSET', MARKS, 'set_back', from .. ' ' .. integer(tonumber(passed)) .. ' ' .. script_type)
return 1
