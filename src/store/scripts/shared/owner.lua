-- Ownership of jobs by boots.
-- needs: wrong_type names job

-- Tells if a boot may own jobs: its lease has not been declared over. A score of 0 means declared
-- over, with jobs still to be put back. Without a score it may if it runs jobs, as the leases were
-- deleted; and if the leases cannot be read, as nobody can declare one over.
local function may_own(boot)
  local lease = redis.call('ZSCORE', BOOTS, boot)
  if lease then return tonumber(lease) > 0 end
  return has_wrong_type[BOOTS] or redis.call('EXISTS', RUNNING .. boot) == 1
end

-- Tells if a boot of Hero runs the job. The boot id in the hash is no proof: it stays there while
-- the job waits for its next attempt, which a foreign actor may take.
local function is_ours(id, boot)
  return present(boot)
    and (redis.call('ZSCORE', RUNNING .. boot, id) or has_wrong_type[RUNNING .. boot])
end

-- Removes a job from the running set of a boot: the fence. False if the boot does not own it. If the
-- set has the wrong type, the hash tells.
local function disown(boot, id)
  if redis.call('ZREM', RUNNING .. boot, id) == 1 then return true end
  if not has_wrong_type[RUNNING .. boot] then return false end
  local f = read(id, 'status', 'boot_id')
  return f[1] == 'started' and f[2] == boot
end
