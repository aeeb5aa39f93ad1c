-- The indexes. A job stands in exactly one, that of its state; scores are microseconds:
--   dispatched  READY..queue                  by dispatch
--               HELD..queue                   likewise, if a limit holds the job
--   started     RUNNING..boot                 by start
--   the others  INDEX..status..':type:'..type by the time that matters to the state
-- needs: time

-- Entries of expired jobs that one call removes from an index.
local EXPIRED_PER_STEP = 200

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

-- Removes entries of expired jobs.
local function trim(status, script_type, at)
  local index = index_of(status, script_type)
  local past = redis.call('ZRANGEBYSCORE', index, '-inf', integer(at), 'LIMIT', 0, EXPIRED_PER_STEP)
  if #past > 0 then redis.call('ZREM', index, unpack(past)) end
  return #past
end
