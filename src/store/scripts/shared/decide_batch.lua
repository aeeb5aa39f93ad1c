-- Decides that the staged jobs of an atomic batch are submitted.
-- needs: wrong_type time names graph_start

-- What is staged must last until it is submitted, however late a supervisor does that. From a place on, keeps the keys of
-- some jobs, and notes where to go on.
local function keep_staged(batch, from)
  local most = 1000
  local jobs = redis.call('LRANGE', batch .. '::jobs', from, from + most - 1)
  for _, text in ipairs(jobs) do
    local job = cjson.decode(text)
    local staged = batch .. ':' .. job.id
    redis.call('PERSIST', staged)
    redis.call('PERSIST', RESERVED .. job.id)
    if job.unique_key then redis.call('PERSIST', UNIQUE .. job.unique_key) end
    if job.within then redis.call('PERSIST', staged .. ':pending') end
    if job.more then redis.call('PERSIST', staged .. ':dependents') end
    if job.others then redis.call('PERSIST', staged .. ':others') end
  end
  redis.call('SET', batch, #jobs == most and 'kept ' .. integer(from + most) or 'kept')
end

-- Decides it, unless another number of jobs is staged, or the id of its graph, '' for none, is taken: the arguments from a
-- place on are the fields and values of the graph. Returns the number of jobs, as text; -1 if the batch has expired; -2 if the
-- id is taken.
local function decide_batch(id_of_batch, number, graph, args, from, at)
  local batch = STAGED .. id_of_batch
  if redis.call('GET', batch) ~= number then return -1 end
  if graph ~= '' and not open_graph(graph, args, from, at) then
    redis.call('DEL', batch)
    return -2
  end
  if graph ~= '' then redis.call('HSET', GRAPH .. graph, 'opening', id_of_batch) end
  redis.call('PERSIST', batch .. '::jobs')
  redis.call('RPUSH', COMMITTING, id_of_batch)
  keep_staged(batch, 0)
  return number
end
