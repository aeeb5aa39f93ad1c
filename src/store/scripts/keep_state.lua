-- Keeps the state of a running job for its next attempt, while the job is in the boot's running set since the claim
-- of this attempt: a late call must not replace the state of a later attempt.
--
-- ARGV: 1 boot  2 id  3 time of the claim in us  4 the state as JSON; '' removes it
-- returns 1 if it was kept
-- needs: time

local boot, id, state = ARGV[1], ARGV[2], ARGV[4]
local score = tonumber(redis.call('ZSCORE', RUNNING .. boot, id) or nil)
if not score or score > tonumber(ARGV[3]) then return 0 end
if state == '' then
  redis.call('HDEL', JOB .. id, 'kept_state', 'kept_state_at')
else
  redis.call('HSET', JOB .. id, 'kept_state', state, 'kept_state_at', rfc3339(now_us()))
end
return 1
