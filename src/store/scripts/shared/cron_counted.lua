-- The time from which the lateness of a periodic job is counted.
-- needs: wrong_type time cron

-- Lets a periodic job be overdue from another time on: a supervisor computes it at its next round.
local function count_from(name, at)
  redis.call('HSET', CRON_ENDED .. name, 'since_us', integer(at))
  redis.call('HDEL', CRON_ENDED .. name, 'overdue_us', 'twice_us')
  redis.call('EXPIRE', CRON_ENDED .. name, CRON_TTL_S)
end
