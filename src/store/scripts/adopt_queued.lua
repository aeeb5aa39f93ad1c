-- Adopts jobs that stand in queues without a ready entry: foreign programs pushed them. Looks at a
-- window of each queue that has more entries than its ready index, at constant cost for all others. The
-- window moves from the end of the list to its head.
--
-- The ready index keeps the order of its list: the sweep for lost pops relies on it. So an adopted job
-- gets the score of the next entry behind it that has one.
--
-- ARGV: 1 limit on queues  2 limit on entries  3 retention
-- returns how many were adopted
-- needs: wrong_type time names routing sweep counters adoption

local window = tonumber(ARGV[2])
local at = now_us()
local adopt = adopting(at, ARGV[3])
local adopted = 0
despite_full_memory()

-- The fields of a job in this queue, with those that it leaves out. Nil if it is not Hero's to adopt.
local function fields_of(id, queue)
  local f = read_for_adoption(id)
  if f.status ~= 'dispatched' or f.held_by or f.legacy then return nil end
  local of_list = { script_type = type_of_queue(queue), group = string.match(queue, ':group:([^:]+)'),
    instance = string.match(queue, ':inst:(%d+)'), priority = string.match(queue, ':prio:(%d)') }
  for name, value in pairs(of_list) do
    if not f[name] then
      f[name] = value
      redis.call('HSET', JOB .. id, name, value)
    end
  end
  return queue_of(f.script_type, f.group, f.instance, f.priority) == queue and f or nil
end

-- Looks at entries of a list; `behind` is the score of the next one.
local function look_at(queue, ids, behind)
  local scores = redis.call('ZMSCORE', READY .. queue, unpack(ids))
  for place = #ids, 1, -1 do
    local id, score = ids[place], scores[place]
    if score then
      behind = math.min(behind, tonumber(score))
    elseif legal_id(id) then
      local f = fields_of(id, queue)
      if f then
        adopted = adopted + 1
        if adopt(id, f, f.script_type) == 'dispatched' then
          redis.call('ZADD', READY .. queue, integer(behind), id)
        else
          redis.call('LREM', WORK .. queue, 0, id)
        end
      end
    end
  end
end

-- The score of the entry behind the window. Nil if it is unknown: other entries stand there now.
local function score_behind(queue, passed)
  if passed == 0 then return at end
  local id = redis.call('LINDEX', WORK .. queue, -passed)
  return id and tonumber(redis.call('ZSCORE', READY .. queue, id) or nil)
end

for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, ARGV[1])) do
  local length, mark = redis.pcall('LLEN', WORK .. queue), 'adopt ' .. queue
  if type(length) == 'number' and type_of_queue(queue) and adopted < window
    and length > redis.call('ZCARD', READY .. queue) and not has_wrong_type[READY .. queue] then
    local passed = tonumber(redis.call('HGET', MARKS, mark) or '') or 0
    local behind = passed < length and score_behind(queue, passed)
    if behind then
      look_at(queue, redis.call('LRANGE', WORK .. queue, -passed - window, -passed - 1), behind)
    end
    local next_passed = behind and passed + window or 0
    if next_passed > 0 and next_passed < length then
      redis.call('HSET', MARKS, mark, next_passed)
    else
      redis.call('HDEL', MARKS, mark)
    end
  end
end
write_counts()
return adopted
