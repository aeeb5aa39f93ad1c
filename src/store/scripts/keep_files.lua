-- Replaces the files that earlier attempts of a job left by the files of this attempt, while the boot runs the
-- job since that claim. The end of the job, which follows, sets when they go.
--
-- ARGV: 1 boot  2 id  3 time of the claim in us  4 TTL in s  5 key of the contents  6... fields and values
-- returns 'ok', or 'lost' if the boot no longer owns the job
-- needs: contents

local id, files = ARGV[2], FILES .. ARGV[2]
local score = redis.call('ZSCORE', RUNNING .. ARGV[1], id)
if not score or tonumber(score) > tonumber(ARGV[3]) then return 'lost' end
for _, field in ipairs(redis.call('HKEYS', files)) do
  if string.sub(field, 1, 2) == 'o:' or string.sub(field, 1, 4) == 'a:o:' then
    redis.call('HDEL', files, field)
  end
end
store_files(id, ARGV[5], 6)
redis.call('EXPIRE', files, ARGV[4])
return 'ok'
