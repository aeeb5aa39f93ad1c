-- Restores what belongs to no job: the state of a periodic job, the starts under a limit, the dead
-- letters of a type. A key that exists stays as it is; the last ends of a periodic job get the fields that they lack,
-- since a supervisor may have counted the job already.
--
-- ARGV: 1 'cron' | 'cron_ends' | 'limit' | 'dead'  2 name  3 TTL in ms, or ''  4... values of the key
-- returns 'ok'; 'exists' if the key exists; 'illegal' if the name cannot be part of a key
-- needs: names

local key
if ARGV[1] == 'cron' then key = CRON .. ARGV[2] end
if ARGV[1] == 'cron_ends' then key = CRON_ENDED .. ARGV[2] end
if ARGV[1] == 'limit' then key = legal_limit(ARGV[2]) and LIMIT_STARTS .. ARGV[2] end
if ARGV[1] == 'dead' then key = legal_type(ARGV[2]) and DEAD .. ARGV[2] end
if not key then return 'illegal' end
if ARGV[1] == 'cron_ends' then
  for at = 4, #ARGV - 1, 2 do
    if redis.call('HEXISTS', key, ARGV[at]) == 0 then redis.call('HSET', key, ARGV[at], ARGV[at + 1]) end
  end
  if present(ARGV[3]) then redis.call('PEXPIRE', key, ARGV[3]) end
  return 'ok'
end
if redis.call('EXISTS', key) == 1 then return 'exists' end

local write = { cron = 'HSET', limit = 'ZADD', dead = 'RPUSH' }
for first = 4, #ARGV, 1000 do
  redis.call(write[ARGV[1]], key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
end
if present(ARGV[3]) then redis.call('PEXPIRE', key, ARGV[3]) end
return 'ok'
