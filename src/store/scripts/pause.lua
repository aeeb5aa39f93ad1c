-- Pauses or resumes queues, by their names or by rules. A claim leaves paused queues alone; the resume of a queue
-- wakes an actor.
--
-- ARGV: 1 'pause' | 'resume'  2... the queues, or rules as `shared/pauses.lua` has them
-- returns for each 1 if its state has changed, else 0
-- needs: wrong_type wake

local changed = {}
for number = 2, #ARGV do
  local queue = ARGV[number]
  changed[#changed + 1] = redis.call(ARGV[1] == 'pause' and 'SADD' or 'SREM', PAUSED, queue)
  if ARGV[1] ~= 'pause' and not string.find(queue, '*', 1, true) then wake(queue) end
end
return changed
