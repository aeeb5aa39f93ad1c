-- Adds, changes or deletes a periodic job that is kept in Redis. Each change has another revision, so that
-- supervisors notice it. A job that is new or changed counts from now on.
--
-- ARGV: 1 'add' | 'edit' | 'delete' | 'restore', which leaves an existing one and its state as they are
--       2 name  3 definition as JSON  4 the definition that is changed
--       5 the limit of periodic jobs
-- returns 'ok'; 'exists' if it is to be added; 'missing' if it does not exist; 'changed' if it is not the
--         definition that was to be changed; 'full' if there are too many
-- needs: wrong_type time cron cron_counted

local action, name = ARGV[1], ARGV[2]
local before = redis.call('HGET', CRON_ADDED, name)
local is_new = action == 'add' or action == 'restore'
if is_new and before then return 'exists' end
if not is_new and not before then return 'missing' end
if action == 'edit' and before ~= ARGV[4] then return 'changed' end
-- The revision is one field more.
if is_new and redis.call('HLEN', CRON_ADDED) > tonumber(ARGV[5]) then return 'full' end

local now = now_us()
local at = integer(now)
if action == 'delete' then
  redis.call('HDEL', CRON_ADDED, name)
  redis.call('DEL', CRON .. name, CRON_ENDED .. name)
  redis.call('ZREM', CRON_NAMES, name)
else
  redis.call('HSET', CRON_ADDED, name, ARGV[3])
  if action ~= 'restore' then
    redis.call('HSET', CRON .. name, 'due_us', at)
    redis.call('EXPIRE', CRON .. name, CRON_TTL_S)
    count_from(name, now)
  end
end
redis.call('HSET', CRON_ADDED, '#', at)
return 'ok'
