-- Lets the opener of a batch add jobs to it: nobody else knows its opening.
--
-- ARGV: 1 id  2 opening
-- returns the number of its jobs; -1 if no batch of this opening has the id, or has all its jobs
-- needs: wrong_type

local batch = redis.call('HMGET', GRAPH .. ARGV[1], 'opening', 'jobs')
if ARGV[2] == '' or batch[1] ~= ARGV[2] then return -1 end
return tonumber(batch[2]) or 0
