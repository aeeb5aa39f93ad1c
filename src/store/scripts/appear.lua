-- Gives an actor's name to a boot, unless a live boot holds it.
--
-- ARGV: 1 boot  2 TYPE:GROUP:INSTANCE  3 presence JSON  4 presence TTL in s
--       5 lease in ms  6 presence that may be replaced, as it was read, or ''
-- returns '' if the boot holds the name now, else the presence of the holder
-- needs: wrong_type time sweep index

local HOSTS_MAX = 10000
local held = redis.call('GET', PRESENCE .. ARGV[2])
if held and held ~= ARGV[6] then
  local ok, presence = pcall(cjson.decode, held)
  if not ok or type(presence) ~= 'table' or presence.boot_id ~= ARGV[1] then return held end
end
despite_full_memory()
if not held or held == ARGV[6] then
  -- Hero's orders to the process before are none to this one, which would drain or end. Stops of jobs hold.
  local script_type, group, instance = string.match(ARGV[2], '^([^:]+):([^:]+):([^:]+)$')
  local list = CONTROL .. script_type .. ':group:' .. group .. ':inst:' .. instance
  redis.call('LREM', list, 0, '{"cmd":"drain"}')
  redis.call('LREM', list, 0, '{"cmd":"shutdown"}')
end
local at = now_us()
redis.call('ZADD', BOOTS, integer(at + tonumber(ARGV[5]) * 1000), ARGV[1])
redis.call('SET', PRESENCE .. ARGV[2], ARGV[3], 'EX', ARGV[4])
redis.call('ZADD', ACTORS, integer(at), ARGV[2])
local is_json, presence = pcall(cjson.decode, ARGV[3])
local hostname = is_json and type(presence) == 'table' and presence.hostname
if type(hostname) == 'string' then
  -- Boots whose lease a person deleted stay there.
  local hosts = redis.pcall('HLEN', BOOT_HOSTS)
  if type(hosts) == 'number' and hosts >= HOSTS_MAX then redis.pcall('DEL', BOOT_HOSTS) end
  -- An access list of an older version does not permit the key.
  redis.pcall('HSET', BOOT_HOSTS, ARGV[1], hostname)
end
-- Control messages reach the actors of a type that has had no job yet.
register(TYPES, string.match(ARGV[2], '^[^:]+'))
return ''
