-- Stores the files of a job that is about to be submitted. They go by themselves if it is not.
--
-- ARGV: 1 id  2 TTL in s  3 key of the contents  4... fields and values
-- returns 'ok', or 'exists' if the id is taken
-- needs: reserved contents

local id, files = ARGV[1], FILES .. ARGV[1]
if is_taken(id) or redis.call('EXISTS', files) == 1 then return 'exists' end
store_files(id, ARGV[3], 4)
redis.call('EXPIRE', files, ARGV[2])
return 'ok'
