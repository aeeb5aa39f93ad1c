-- Pauses queues, or lets them go on. Live actors of their types are told to look at them again:
-- whoever waits for a queue learns from its next claim that it is paused, or that it is not any
-- more.
--
-- ARGV: 1 'pause' | 'resume'  2 within how many ms an actor was heard of that is told
--       3 the message for the actors  4 and on: the queues
-- returns for each queue 1 if that was news, else 0
-- needs: time routing control

local command = ARGV[1] == 'pause' and 'SADD' or 'SREM'
local news, told = {}, {}
local at = now_us()
for number = 4, #ARGV do
  local queue = ARGV[number]
  news[#news + 1] = redis.call(command, PAUSED, queue)
  local script_type = type_of_queue(queue)
  if news[#news] == 1 and not told[script_type] then
    told[script_type] = true
    tell_actors_of(script_type, { ARGV[3] }, at, tonumber(ARGV[2]) * 1000)
  end
end
return news
