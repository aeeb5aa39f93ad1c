-- Restores one job of a backup. An ended job is complete then. Any other becomes `created`, and
-- restore_place.lua sends it on its way once all jobs are there.
--
-- ARGV: 1 id  2 retention, for an ended job without a TTL  3 its TTL in ms, or ''
--       4 its score in the index of an ended job, or '' if the backup has none  5... fields and values
-- returns 'ok'; 'exists' if the id is taken
-- needs: wrong_type time names job index ends unique ending

local id, at = ARGV[1], now_us()
if redis.call('EXISTS', JOB .. id) == 1 then return 'exists' end

for first = 5, #ARGV, 1000 do
  redis.call('HSET', JOB .. id, unpack(ARGV, first, math.min(first + 999, #ARGV)))
end
local f = read(id, 'status', 'script_type', 'actor', 'unique_key', 'retention', 'unique_scope', 'error', 'finished_at')
local script_type = type_of_job(f[2], f[3])
if f[1] == 'finished' or f[1] == 'error' then
  local for_ms = tonumber(ARGV[3])
  if for_ms then
    redis.call('PEXPIRE', JOB .. id, integer(for_ms))
  else
    for_ms = set_expiry(id, f[1], f[5], ARGV[2])
  end
  local ended = microseconds(f[8])
  enter_ended(id, f[1], end_of(f[1], f[7]), script_type, ended > 0 and ended or at,
    tonumber(ARGV[4]) or at + for_ms * 1000)
else
  enter('created', script_type, id, at)
  local key = present(f[4]) and unique_name(id, f[4], f[6])
  if key and not holder_of(key) then redis.call('SET', UNIQUE .. key, id) end
end
return 'ok'
