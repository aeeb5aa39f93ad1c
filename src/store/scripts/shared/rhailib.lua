-- Replies to tasks of rhailib.

-- Tells if a client may have a reply pushed to a key: not to Hero's own, nor to rhailib's queues.
local function may_reply_to(list)
  for _, prefix in ipairs({ HERO, TASKS, DETAILS }) do
    if string.sub(list, 1, #prefix) == prefix then return false end
  end
  return #list <= 256
end

-- Writes the outcome of a task into its details, and pushes it to the list that its client named:
-- once, even if the job is retried.
local function answer_task(task, reply_to, status, text, when)
  local TASK_REPLY_TTL_S = 3600
  local word = status == 'finished' and 'completed' or 'error'
  local field = status == 'finished' and 'output' or 'error'
  redis.pcall('HSET', DETAILS .. task, 'status', word, field, text, 'updated_at', when)
  -- rhailib's own documents have two names for the error.
  if field == 'error' then redis.pcall('HSET', DETAILS .. task, 'error_msg', text) end
  if reply_to and reply_to ~= '' and may_reply_to(reply_to) then
    local reply = { task_id = task, status = word }
    reply[field] = text
    reply.error_msg = reply.error
    redis.pcall('LPUSH', reply_to, cjson.encode(reply))
    redis.pcall('EXPIRE', reply_to, TASK_REPLY_TTL_S)
  end
end

local function answer_task_of(id, status, text, when)
  local f = redis.call('HMGET', JOB .. id, 'rhailib_task', 'rhailib_reply_to')
  if f[1] then
    redis.call('HDEL', JOB .. id, 'rhailib_reply_to')
    answer_task(f[1], f[2], status, text, when)
  end
end
