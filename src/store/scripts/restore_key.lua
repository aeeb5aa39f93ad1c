-- Restores what belongs to no job: the state of a periodic job, the starts under a limit, the dead
-- letters of a type. A key that exists stays as it is.
--
-- ARGV: 1 'cron' | 'limit' | 'dead'  2 name  3 TTL in ms, or ''  4... values of the key
-- returns 'ok'; 'exists' if the key exists; 'illegal' if the name cannot be part of a key
-- needs: names

local key
if ARGV[1] == 'cron' then key = CRON .. ARGV[2] end
if ARGV[1] == 'limit' then key = legal_limit(ARGV[2]) and LIMIT_STARTS .. ARGV[2] end
if ARGV[1] == 'dead' then key = legal_type(ARGV[2]) and DEAD .. ARGV[2] end
if not key then return 'illegal' end
if redis.call('EXISTS', key) == 1 then return 'exists' end

local write = { cron = 'HSET', limit = 'ZADD', dead = 'RPUSH' }
for first = 4, #ARGV, 1000 do
  redis.call(write[ARGV[1]], key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
end
if present(ARGV[3]) then redis.call('PEXPIRE', key, ARGV[3]) end
return 'ok'
