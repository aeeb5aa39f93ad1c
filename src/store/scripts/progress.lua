-- Writes fields of the hash of a running job, such as its progress, while the boot owns it: a late report must not
-- create a hash.
--
-- ARGV: 1 boot  2 id  3, 4, … names and values of fields; an empty value of `unfinished_line` removes it
-- returns 1 if they were written

local boot, id = ARGV[1], ARGV[2]
if not redis.call('ZSCORE', RUNNING .. boot, id) then return 0 end
for at = 3, #ARGV, 2 do
  if ARGV[at] == 'unfinished_line' and ARGV[at + 1] == '' then
    redis.call('HDEL', JOB .. id, ARGV[at])
  else
    redis.call('HSET', JOB .. id, ARGV[at], ARGV[at + 1])
  end
end
return 1
