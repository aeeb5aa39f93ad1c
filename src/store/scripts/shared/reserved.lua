-- Ids of jobs of an atomic batch that is being stored.
-- needs: wrong_type

-- Tells if a batch has reserved an id. Once a batch is gone its reservations are void.
local function is_reserved(id)
  local batch = redis.call('GET', RESERVED .. id)
  return batch and redis.call('EXISTS', STAGED .. batch) == 1
end

-- Tells if an id belongs to a job, or is reserved for one.
local function is_taken(id)
  if redis.call('EXISTS', JOB .. id, RESERVED .. id) == 0 then return false end
  return redis.call('EXISTS', JOB .. id) == 1 or is_reserved(id)
end
