-- Puts a job at the front of its queue, and of the ready index: jobs after it would look popped.
-- The caller writes the status.
-- needs: time routing index legacy wake
-- rarely: where

local function push_front(id, queue, at)
  register(TYPES, type_of_queue(queue))
  register(QUEUES, queue)
  local first = redis.call('ZRANGE', READY .. queue, 0, 0, 'WITHSCORES')
  if first[2] then at = math.min(at, tonumber(first[2]) - 1) end
  redis.call('ZADD', READY .. queue, integer(at), id)
  redis.pcall('LPUSH', WORK .. queue, id)
  if is_where_queue(queue) then rarely().note_where(queue, id, at) end
  wake(queue)
  if LEGACY then copy_to_legacy(id, queue, true) end
end
