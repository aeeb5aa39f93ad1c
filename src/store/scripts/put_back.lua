-- Puts back an entry that a blocking pop took and its caller cannot use, at the front. The id of a job
-- that has ended stays out: it was perhaps popped long ago, and would look like a new push.
--
-- KEYS: the list
-- ARGV: 1 the entry  2 '1' if the call is repeated when its answer is lost
-- returns the length of the list, 0 if the id stays out
-- needs: wrong_type time job sweep leftovers

local id = ARGV[1]
local status = read(id, 'status')[1]
if status == 'finished' or status == 'error' then return 0 end
despite_full_memory()
if status and ARGV[2] == '1' then mark_leftover(id, now_us(), LEFTOVER_US) end
return redis.pcall('LPUSH', KEYS[1], id)
