-- The pauses of queues: by their names, or by rules for all queues, for the queues of a type, of a group, or of both.
-- needs: wrong_type routing

-- Tells if a queue is paused.
local function is_queue_paused(queue)
  local script_type, group = type_of_queue(queue), parts_of_queue(queue).group
  local of_type = 'type:' .. (script_type or '')
  local names = { queue, '*', of_type .. ':*' }
  if group then
    names[4], names[5] = 'type:*:group:' .. group .. ':*', of_type .. ':group:' .. group .. ':*'
  end
  for _, name in ipairs(redis.call('EXISTS', PAUSED) == 1 and names or {}) do
    if redis.call('SISMEMBER', PAUSED, name) == 1 then return true end
  end
  return false
end
