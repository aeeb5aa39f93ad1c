-- Withdraws a boot that ends in order: its actors' presence and, if it runs nothing any more, its
-- lease. With jobs left the lease stays, and runs out.
--
-- ARGV: 1 boot  2 how many actors, then each as TYPE:GROUP:INSTANCE
-- returns how many jobs it still owns

local boot = ARGV[1]
for number = 1, tonumber(ARGV[2]) do
  local actor = ARGV[2 + number]
  local ok, presence = pcall(cjson.decode, redis.call('GET', PRESENCE .. actor) or '')
  -- Somebody else may live under the name by now.
  if ok and type(presence) == 'table' and presence.boot_id == boot then
    redis.call('DEL', PRESENCE .. actor)
    redis.call('ZREM', ACTORS, actor)
  end
end
local left = redis.call('ZCARD', RUNNING .. boot)
if left == 0 then redis.call('ZREM', BOOTS, boot) end
return left
