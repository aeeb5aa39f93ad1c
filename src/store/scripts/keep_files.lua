-- Replaces the files that earlier attempts of a job left by those of this attempt, while the boot runs the
-- job since that claim. The end of the job, which follows, sets when they go.
--
-- ARGV: 1 boot  2 id  3 time of the claim in us  4 TTL in s  5... fields and values
-- returns 'ok', or 'lost' if the boot no longer owns the job

local id, files = ARGV[2], FILES .. ARGV[2]
local score = redis.call('ZSCORE', RUNNING .. ARGV[1], id)
if not score or tonumber(score) > tonumber(ARGV[3]) then return 'lost' end
for _, field in ipairs(redis.call('HKEYS', files)) do
  if string.sub(field, 1, 2) == 'o:' then redis.call('HDEL', files, field) end
end
for number = 5, #ARGV, 2 do redis.call('HSET', files, ARGV[number], ARGV[number + 1]) end
redis.call('EXPIRE', files, ARGV[4])
return 'ok'
