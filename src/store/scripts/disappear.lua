-- Deregisters a boot that ends in order: the presence of its actors and, if it owns no job, its
-- lease. With jobs left the lease stays and runs out.
--
-- ARGV: 1 boot  2 number of actors, then each as TYPE:GROUP:INSTANCE
-- returns how many jobs it still owns
-- needs: wrong_type

local boot = ARGV[1]
for number = 1, tonumber(ARGV[2]) do
  local actor = ARGV[2 + number]
  local ok, presence = pcall(cjson.decode, redis.call('GET', PRESENCE .. actor) or '')
  -- Another boot may hold the name by now.
  if ok and type(presence) == 'table' and presence.boot_id == boot then
    redis.call('DEL', PRESENCE .. actor)
    redis.call('ZREM', ACTORS, actor)
  end
end
local left = redis.call('ZCARD', RUNNING .. boot)
if left == 0 then
  redis.call('ZREM', BOOTS, boot)
  redis.pcall('HDEL', BOOT_HOSTS, boot)
end
return left
