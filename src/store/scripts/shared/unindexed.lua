-- Jobs that stand in no index: foreign actors that waited for them popped their ids before Hero knew of them. A
-- supervisor looks at those that are noted here, by the time since when. 'LIST ID' is an id that was pushed before its
-- hash was there.
-- needs: wrong_type time names routing job owner index

local is_indexed, read_place, note_unindexed, note_if_unindexed
do
  local UNINDEXED_MAX = 10000

  -- Tells if a job stands in the index of its state; `f` are its status, type, group, instance, priority, boot, actor
  -- and `where`. Nil if a job of this state cannot have been popped.
  function is_indexed(id, f)
    local status = f[1]
    if status == 'dispatched' then
      local queue = queue_of(f[2], f[3], f[4], f[5], f[8])
      return queue and (redis.call('ZSCORE', READY .. queue, id) or redis.call('ZSCORE', HELD .. queue, id)) and true or false
    elseif status == 'started' then
      return (is_ours(id, f[6]) or redis.call('ZSCORE', index_of(status, type_of_job(f[2], f[7])), id)) and true or false
    elseif status == 'finished' or status == 'error' then
      -- The end is known if the job expires.
      return (redis.call('PTTL', JOB .. id) >= 0
        or redis.call('ZSCORE', index_of(status, type_of_job(f[2], f[7])), id)) and true or false
    end
    return nil
  end

  function read_place(id)
    return read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'boot_id', 'actor', 'where')
  end

  -- Notes a job, so that the next look is at it. An access list of an older version does not permit the key.
  function note_unindexed(id, at)
    local number = redis.pcall('ZCARD', UNINDEXED)
    if type(number) == 'number' and number < UNINDEXED_MAX then redis.pcall('ZADD', UNINDEXED, 'NX', integer(at), id) end
  end

  -- Notes a job that something waits for, if it stands in no index.
  function note_if_unindexed(id)
    if is_indexed(id, read_place(id)) == false then note_unindexed(id, now_us()) end
  end
end
