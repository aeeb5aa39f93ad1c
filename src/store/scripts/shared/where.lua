-- The expressions of `where`. A job that has one waits in a queue of its own, type:T:where:DIGEST, for the actors whose
-- labels match: they learn of a new expression here, and test it themselves.
-- needs: wrong_type time routing control

-- The types whose actors this script has notified.
local notified_types = {}

-- Notes the expression of a job that goes to its queue; notifies the actors of its type if it is new.
local function note_where(queue, id, at)
  local TOLD_WITHIN_US = 60000000
  local script_type, digest = type_of_queue(queue), parts_of_queue(queue).digest
  local text = redis.call('HGET', JOB .. id, 'where')
  if not digest or not text then return end
  -- An access list of an older version does not permit the keys: a submission was refused before.
  redis.pcall('ZADD', WHERE_USED .. script_type, integer(at), digest)
  local is_new = redis.pcall('HSETNX', WHERE .. script_type, digest, text) == 1
  if is_new and not notified_types[script_type] then
    notified_types[script_type] = true
    tell_actors_of(script_type, nil, { '{"cmd":"where"}' }, at, TOLD_WITHIN_US)
  end
end
