-- Stores the files of a job that is about to be submitted. They go by themselves if it is not.
--
-- ARGV: 1 id  2 TTL in s  3... fields and values
-- returns 'ok', or 'exists' if the id is taken
-- needs: reserved

local id, files = ARGV[1], FILES .. ARGV[1]
if is_taken(id) or redis.call('EXISTS', files) == 1 then return 'exists' end
for number = 3, #ARGV, 2 do redis.call('HSET', files, ARGV[number], ARGV[number + 1]) end
redis.call('EXPIRE', files, ARGV[2])
return 'ok'
