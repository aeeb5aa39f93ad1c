-- Tells further dependents of a job that had more than one step may tell.
--
-- ARGV: 1 retention of dependents that fail
-- returns 1 if there were any
-- needs: wrong_type time counters dependents

local entry = redis.call('LPOP', SETTLING)
if not entry then return 0 end
tell_dependents({ cjson.decode(entry) }, now_us(), ARGV[1])
write_counts()
return 1
