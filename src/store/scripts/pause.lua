-- Pauses or resumes queues. A claim leaves paused queues alone; a resume wakes an actor.
--
-- ARGV: 1 'pause' | 'resume'  2... the queues
-- returns for each queue 1 if its state has changed, else 0
-- needs: wrong_type wake

local changed = {}
for number = 2, #ARGV do
  local queue = ARGV[number]
  changed[#changed + 1] = redis.call(ARGV[1] == 'pause' and 'SADD' or 'SREM', PAUSED, queue)
  if ARGV[1] ~= 'pause' then wake(queue) end
end
return changed
