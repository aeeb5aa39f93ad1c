-- Writes the progress of a job while the boot owns it: a late report must not create a hash.
--
-- ARGV: 1 boot  2 id  3 fraction  4 text
-- returns 1 if it was written

local boot, id = ARGV[1], ARGV[2]
if not redis.call('ZSCORE', RUNNING .. boot, id) then return 0 end
redis.call('HSET', JOB .. id, 'progress', ARGV[3], 'progress_text', ARGV[4])
return 1
