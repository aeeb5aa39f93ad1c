-- Removes further copies of the ids of claimed jobs, which would look like a push after their end.
-- needs: wrong_type legacy leftovers

-- `jobs` are the jobs of a claim, `taken` their ids as a set. The list has more ids than its ready index.
local function remove_other_copies(list, jobs, taken)
  if redis.call('LLEN', list) > SEARCHED_QUEUE_LEN then
    for _, job in ipairs(jobs) do mark_leftover(job[1]) end
    return
  end
  for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if taken[id] then redis.call('LREM', list, 0, id) end
  end
end
