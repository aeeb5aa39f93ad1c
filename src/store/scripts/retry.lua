-- Retries ended jobs on request, attempts and crashes reset: at the end of their queues, or once
-- their prerequisites have finished.
--
-- ARGV: 1 id, or '' to continue  2 'alone', or 'dependents' to retry the job only if it failed, and
--       all dependents that failed because a prerequisite did  3... to continue: the rest to do; else
--       settings to correct, as field, text, …: the job is then retried however it ended  last: the rights of the caller
-- returns { state or refusal, detail, retried dependents, dependents that stay, done, left to do }
--       state: 'dispatched', 'waiting_for_prerequisites'
--       refusal: 'missing' if there is none that the caller may change; 'illegal' if its fields name no queue; 'duplicate' and the job that holds
--         its unique key, '' if the caller may not see it; 'refused' and the state that forbids it; 'failed_prerequisite' and the job
--         whose failure was the cause; 'lost_prerequisite' and the job that does not exist any more
--       retried dependents: id, state, …  dependents that stay: id, refusal, detail, …
--       left to do: id, place in its dependents, …, from the entry after `done` on
-- needs: wrong_type caller rights time names routing job attempts counters index events unique queue leave prerequisites waiting awaited graph_end

local at = now_us()
-- Jobs that one call looks at, and failures that one chain of causes has.
local LOOKED_MAX = 500
local CAUSES_MAX = 500
local looked = 0
local retried, stay, left = {}, {}, {}

local function append(list, ...)
  for _, value in ipairs({ ... }) do list[#list + 1] = value end
end

-- The prerequisite that made a job fail; nil if it failed by itself.
local function cause_of(id)
  looked = looked + 1
  local f = read(id, 'status', 'error', 'started_at')
  local cause = f[1] == 'error' and not f[3] and f[2]
  if not cause or string.sub(cause, 1, #PREREQUISITE_FAILED) ~= PREREQUISITE_FAILED then return nil end
  return legal_id(string.sub(cause, #PREREQUISITE_FAILED + 1))
end

local function refusal_for(failed)
  if not read(failed, 'status')[1] then return 'lost_prerequisite', failed end
  for _ = 1, CAUSES_MAX do
    local cause = cause_of(failed)
    if not cause or visible_id(RIGHTS, cause) == '' or read(cause, 'status')[1] ~= 'error' then break end
    failed = cause
  end
  return 'failed_prerequisite', failed
end

local function retry(id)
  if not caller_may('change', id) then return 'missing', '' end
  local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'unique_key',
    'prerequisites', 'after_any', 'dependencies', 'error', 'finished_at', 'graph_id',
    'output_key', 'prerequisites_at', 'unique_scope', 'where')
  local status = f[1]
  if not status then return 'missing', '' end
  if status ~= 'finished' and status ~= 'error' then return 'refused', status end
  local queue = queue_of(f[2], f[3], f[4], f[5], f[16])
  if not queue then return 'illegal', '' end
  local pending, failed, number, _, is_lost, over = look_at_own_prerequisites(f[7] or f[9], f[8], f[14])
  looked = looked + number
  if is_lost then return 'lost_prerequisite', failed end
  if failed then return refusal_for(failed) end
  if present(f[6]) then
    local key = unique_name(id, f[6], f[15])
    if not key then return 'illegal', '' end
    local holder = holder_of(key)
    if holder and holder ~= id then return 'duplicate', visible_id(RIGHTS, holder) end
    redis.call('SET', UNIQUE .. key, id)
  end
  leave_index(id, status, f[2], { group = f[3], instance = f[4], priority = f[5], where = f[16] })
  local ended = { script_type = f[2], error = f[10], finished_at = f[11], output_key = f[13] }
  forget_end(id, status, ended, 'attempt', 'stopped_by')
  local state = #pending > 0 and 'waiting_for_prerequisites' or 'dispatched'
  log_event(id, state)
  redis.call('HSET', JOB .. id, 'status', state, 'updated_at', rfc3339(at))
  if present(f[12]) then note_in_graph(f[12], id, state, nil, at) end
  keep_all_for(id, over)
  if #pending > 0 then
    enter(state, f[2], id, at)
    add_dependent(id, pending)
  else
    push_back(id, queue, at)
  end
  -- It will end once more.
  count(f[2], 'submitted')
  return state, '', true
end

-- Retries the dependents of the jobs in `left`, and theirs in turn.
local function retry_dependents()
  local turn = 1
  while left[turn] and looked < LOOKED_MAX do
    local dependents = list_of_ids(read(left[turn], 'dependents')[1])
    local place = tonumber(left[turn + 1])
    while dependents[place] and looked < LOOKED_MAX do
      local id = dependents[place]
      place = place + 1
      if cause_of(id) then
        local state, detail, is_done = retry(id)
        if is_done then
          append(retried, id, state)
          append(left, id, '1')
        elseif caller_may_see(id) then
          append(stay, id, state, detail)
        end
      end
    end
    left[turn + 1] = integer(place)
    if not dependents[place] then turn = turn + 2 end
  end
  return turn - 1
end

local id, state, detail = ARGV[1], '', ''
if id == '' then
  append(left, unpack(ARGV, 3))
else
  local is_done = true
  state = caller_may('change', id) and read(id, 'status')[1] or 'missing'
  if ARGV[2] == 'alone' or ARGV[3] or state == 'error' or state == 'missing' then
    state, detail, is_done = retry(id)
    if is_done then correct(id, ARGV, 3) end
    if is_done and ARGV[3] then narrow_bounds(id) end
  end
  if ARGV[2] == 'dependents' and is_done then append(left, id, '1') end
end
local done = retry_dependents()
write_counts()
return { state, detail, retried, stay, done, left }
