-- Renews the presence of a supervisor, and the times that jobs of a script type have unless they say.
--
-- ARGV: 1 id of its start  2 presence JSON  3 presence TTL in s  then these times: setting and type, seconds
-- returns { how many supervisors are live, '' if Redis had its presence, else the mark of the data: another one once Redis
-- was emptied }
-- needs: wrong_type time sweep

local at, ttl_us = now_us(), tonumber(ARGV[3]) * 1000000
despite_full_memory()
local mark = ''
redis.pcall('HSETNX', MARKS, 'supervised', integer(at))
-- A presence may expire, and the mark may be lost alone.
if redis.call('EXISTS', SUPERVISOR .. ARGV[1]) == 0 then
  mark = redis.pcall('HGET', MARKS, 'supervised')
  if type(mark) ~= 'string' then mark = '' end
end
redis.call('SET', SUPERVISOR .. ARGV[1], ARGV[2], 'EX', ARGV[3])
redis.call('ZADD', SUPERVISORS, integer(at), ARGV[1])
redis.call('ZREMRANGEBYSCORE', SUPERVISORS, '-inf', integer(at - ttl_us))

-- An access list of an older version does not permit the key.
local function renew_times()
  local number = (#ARGV - 3) / 2
  local length = redis.pcall('HLEN', TYPE_TIMES)
  if type(length) ~= 'number' then return end
  local is_other = length ~= number
  for place = 4, #ARGV, 2 do
    is_other = is_other or redis.call('HGET', TYPE_TIMES, ARGV[place]) ~= ARGV[place + 1]
  end
  if not is_other then return end
  redis.call('DEL', TYPE_TIMES)
  for place = 4, #ARGV, 2 do redis.call('HSET', TYPE_TIMES, ARGV[place], ARGV[place + 1]) end
end

renew_times()
return { redis.call('ZCARD', SUPERVISORS), mark }
