-- Pauses or resumes queues. Wakes the live actors of their types: their next claim tells them if a
-- queue is paused.
--
-- ARGV: 1 'pause' | 'resume'  2 ms since its last heartbeat within which an actor is woken
--       3 the message for the actors  4... the queues
-- returns for each queue 1 if its state has changed, else 0
-- needs: wrong_type time routing control

local command = ARGV[1] == 'pause' and 'SADD' or 'SREM'
local changed, told = {}, {}
local at = now_us()
for number = 4, #ARGV do
  local queue = ARGV[number]
  changed[#changed + 1] = redis.call(command, PAUSED, queue)
  local script_type = type_of_queue(queue)
  if changed[#changed] == 1 and not told[script_type] then
    told[script_type] = true
    tell_actors_of(script_type, nil, { ARGV[3] }, at, tonumber(ARGV[2]) * 1000)
  end
end
return changed
