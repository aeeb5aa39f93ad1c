-- The indexes. A job stands in exactly one, the index of its state; scores are microseconds:
--   dispatched  READY..queue                  by dispatch
--               HELD..queue                   likewise, if a limit holds the job
--   started     RUNNING..boot                 by start
--   the others  INDEX..status..':type:'..type by the time that matters to the state
--               (finished and error: when the job has expired for sure)
-- Scheduled jobs whose scripts wait stand in INDEX..'waits:type:'..type as well, by the end of their wait: they are counted there.
-- An ended job stands in INDEX..'ended:'..end..':type:'..type as well, by when it ended: lists and counts read that.
-- needs: time

-- The ends of the jobs in each terminal state.
local ENDS = { finished = { 'finished' }, error = { 'failed', 'cancelled', 'replaced', 'expired' } }

-- Entries of expired jobs that one call removes.
local TRIMMED_PER_STEP = 1000

-- Types and queues that this script has registered.
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

local function index_of(status, script_type)
  return INDEX .. status .. ':type:' .. script_type
end

-- Returns 1 if the job is new in the index.
local function enter(status, script_type, id, score)
  register(TYPES, script_type)
  return redis.call('ZADD', index_of(status, script_type), integer(score), id)
end

-- Removes ended jobs from the indexes of their ends.
local function leave_ends(status, script_type, ...)
  for _, word in ipairs(ENDS[status]) do
    redis.call('ZREM', index_of('ended:' .. word, script_type), ...)
  end
end

-- Removes entries of expired jobs, up to a number. Returns how many.
local function trim(status, script_type, at, most)
  local index = index_of(status, script_type)
  local past = math.min(redis.call('ZCOUNT', index, '-inf', integer(at)), most)
  if past > 0 then
    leave_ends(status, script_type, unpack(redis.call('ZRANGE', index, 0, past - 1)))
    redis.call('ZREMRANGEBYRANK', index, 0, past - 1)
  end
  return past
end
