-- Ownership of jobs by boots.
-- needs: names

-- Tells if a boot may own jobs: its lease has not been declared over. A score of 0 means declared
-- over, with jobs still to be put back.
local function may_own(boot)
  local lease = redis.call('ZSCORE', BOOTS, boot)
  return lease and tonumber(lease) > 0
end

-- Tells if a boot of Hero runs the job. The boot id in the hash is no proof: it stays there while
-- the job waits for its next attempt, which a foreign actor may take.
local function is_ours(id, boot)
  return present(boot) and redis.call('ZSCORE', RUNNING .. boot, id)
end
