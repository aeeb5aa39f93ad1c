-- Reads a piece of the output of a finished job, in its hash or under a key of its own.
--
-- ARGV: 1 id  2 place of its first byte, from 0  3 the most bytes
-- returns the piece, and a text that another end of the job changes; nothing if the job has no
--         output any more; or an empty text alone if the key of its output is gone
-- needs: job

local id, from, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local f = read(id, 'status', 'output_key', 'updated_at', 'attempt')
if f[1] ~= 'finished' then return {} end
local piece
if f[2] and redis.call('HSTRLEN', JOB .. id, 'output') == 0 then
  if redis.call('EXISTS', OUTPUT .. id) == 0 then return { '' } end
  piece = redis.pcall('GETRANGE', OUTPUT .. id, from, from + most - 1)
  -- An access list of an older version does not permit it.
  if type(piece) ~= 'string' then piece = string.sub(redis.call('GET', OUTPUT .. id), from + 1, from + most) end
else
  piece = string.sub(redis.call('HGET', JOB .. id, 'output') or '', from + 1, from + most)
end
return { piece, (f[3] or '') .. ' ' .. (f[4] or '') }
