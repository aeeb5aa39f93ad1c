-- Renews the lease of a boot and the presence of its actors.
--
-- ARGV: 1 boot  2 lease in ms  3 presence TTL in s
--       4 number of actors, then for each: TYPE:GROUP:INSTANCE, presence JSON; then the beats that
--       the boot has written, or may have: its last, and those without an answer
-- returns 'ok', 'unsupervised' if no supervisor is live, or 'lost' if the boot was declared dead, or another boot, or a copy of this one on a
--       cloned machine, holds one of its names
-- needs: wrong_type time owner sweep control

local boot, lease_us, ttl_s = ARGV[1], tonumber(ARGV[2]) * 1000, ARGV[3]
local at = now_us()
if not may_own(boot) then return 'lost' end
local own = {}
for place = 5 + 2 * tonumber(ARGV[4]), #ARGV do own[ARGV[place]] = true end
for number = 1, tonumber(ARGV[4]) do
  local held = redis.call('GET', PRESENCE .. ARGV[3 + 2 * number])
  local ok, presence = pcall(cjson.decode, held or '')
  -- Another boot may take a name whose presence has expired; a name has one holder.
  if ok and type(presence) == 'table'
    and (presence.boot_id ~= boot or presence.beat and not own[presence.beat]) then
    return 'lost'
  end
end
despite_full_memory()
redis.call('ZADD', BOOTS, integer(at + lease_us), boot)
for number = 1, tonumber(ARGV[4]) do
  local actor, presence = ARGV[3 + 2 * number], ARGV[4 + 2 * number]
  redis.call('SET', PRESENCE .. actor, presence, 'EX', ttl_s)
  redis.call('ZADD', ACTORS, integer(at), actor)
end
-- Forgets actors without a heartbeat for a day.
redis.call('ZREMRANGEBYSCORE', ACTORS, '-inf', integer(at - 86400000000))
return is_supervised(at) and 'ok' or 'unsupervised'
