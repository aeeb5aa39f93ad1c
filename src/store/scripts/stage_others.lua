-- Stages further prerequisites, outside of its atomic batch, of a job that has too many for one step.
--
-- ARGV: 1 batch id  2 time in s within which the next step must come  3 TTL of staged keys in s
--       4 id of the job, which is staged  then prerequisites ('?' before a job that only has to end)
--       last: the rights of the caller
-- returns '', or the first of them that does not exist for the caller: the batch is refused
-- needs: wrong_type caller waiting

local batch = STAGED .. ARGV[1]
local _, _, unknown = look_at_prerequisites(ARGV, 5, #ARGV, caller_may_see)
if unknown then
  redis.call('DEL', batch)
  return unknown
end
local key = batch .. ':' .. ARGV[4] .. ':others'
redis.call('RPUSH', key, unpack(ARGV, 5))
redis.call('EXPIRE', key, ARGV[3])
redis.call('EXPIRE', batch, ARGV[2])
return ''
