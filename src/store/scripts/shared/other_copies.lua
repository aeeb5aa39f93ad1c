-- Removes further copies of the ids of claimed jobs, which would look like a push after their end.
-- needs: wrong_type routing legacy leftovers

-- Marks a job that a program pushed itself, if it may push it into a legacy queue as well: one after
-- the other.
local function expect_second_push(id, script_type, at)
  local SECOND_PUSH_US = 60000000
  for _, queue in ipairs(LEGACY or {}) do
    if queue.type == script_type then return mark_leftover(id, at, SECOND_PUSH_US) end
  end
end

-- `jobs` are those of a claim, `taken` their ids as a set. A list with no more ids than its ready index
-- has no copies.
local function remove_other_copies(jobs, taken, at)
  local function remove_copies_from(list)
    if redis.call('LLEN', list) > SEARCHED_QUEUE_LEN then
      for _, job in ipairs(jobs) do mark_leftover(job[1], at) end
      return
    end
    for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do
      if taken[id] then redis.call('LREM', list, 0, id) end
    end
  end

  local looked_at = {}
  for _, job in ipairs(jobs) do
    local queue = queue_of_list(job[2])
    if not looked_at[queue] then
      looked_at[queue] = true
      local list, other = WORK .. queue, nil
      local length = redis.call('LLEN', list)
      if not string.find(queue, ':prio:', 1, true) then
        other = list .. ':prio:1'
        length = length + redis.call('LLEN', other)
      end
      if length > 0 and length > redis.call('ZCARD', READY .. queue) then
        remove_copies_from(list)
        if other then remove_copies_from(other) end
      end
    end
  end
end
