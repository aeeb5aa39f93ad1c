-- Appends jobs to queues. The caller writes the status.
-- needs: time routing index legacy wake
-- rarely: where

-- Jobs that this script has appended; they keep their order in the ready index.
local pushed = 0

-- Appends a job to its queue alone. If the key of the list has another type, the push fails and the sweep
-- for foreign pops finds the job in the ready index.
local function add_to_queue(id, queue, at)
  register(TYPES, type_of_queue(queue))
  register(QUEUES, queue)
  redis.call('ZADD', READY .. queue, integer(at + pushed), id)
  redis.pcall('RPUSH', WORK .. queue, id)
  pushed = pushed + 1
  if is_where_queue(queue) then rarely().note_where(queue, id, at) end
  wake(queue)
end

-- Appends a job to its queue, and to its legacy queue if it has one.
local function push_back(id, queue, at)
  add_to_queue(id, queue, at)
  if LEGACY then copy_to_legacy(id, queue) end
end
