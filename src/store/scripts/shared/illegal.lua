-- Ends jobs whose fields name no queue: another program has changed them since they were accepted.
-- needs: names routing job index ending

-- Returns the error of a job whose fields name no queue, in the words of Rust.
local function illegal_text(script_type, group, instance, priority, where)
  local SHOWN_MAX = 80
  local parts = {
    { 'script_type', script_type, legal_type(script_type),
      'a lower-case letter, then at most 31 of a-z, 0-9 and _' },
    { 'group', group, queue_of('any', group), 'a letter a-z or digit, then at most 63 of a-z, 0-9, _, . and -' },
    { 'instance', instance, queue_of('any', nil, instance), 'a whole number from 1 to 65535' },
    { 'priority', priority, queue_of('any', nil, nil, priority), '0 (urgent), 1 (normal) or 2 (background)' },
  }
  if present(where) and (present(group) or present(instance)) then
    return 'invalid job: where cannot stand beside a group or an instance, which are labels'
  end
  for _, part in ipairs(parts) do
    local field, value, is_legal, form = part[1], part[2], part[3], part[4]
    if not is_legal then
      if not present(value) then return 'invalid job: ' .. field .. ' is missing' end
      local shown = string.gsub(string.sub(value, 1, SHOWN_MAX), '[^\32-\126]', '?')
      return 'invalid job: ' .. field .. ' `' .. shown .. '` is not legal: ' .. form
    end
  end
end

-- Ends a job that waits and could not go to its queue. Its type is `own_type` if it names no legal one. The
-- caller removes it from the index of its state before, and tells its dependents. Returns what it tells them,
-- and true if `settle` has callbacks of its graph to start.
local function end_illegal(id, own_type, at, retention)
  local f = read(id, 'script_type', 'group', 'instance', 'priority', 'reply', 'unique_key', 'dependents', 'retention', 'where')
  local text = illegal_text(present(f[1]) or own_type, f[2], f[3], f[4], f[9])
  local script_type = legal_type(f[1]) or legal_type(own_type) or 'unknown'
  redis.call('DEL', PENDING .. id)
  redis.call('ZREM', index_of('waits', script_type), id)
  redis.call('HDEL', JOB .. id, 'wait')
  local job = { script_type = script_type, reply = f[5], unique_key = f[6], retention = f[8] }
  local calls_back = end_job(id, job, 'error', text, nil, at, retention)
  note_end(id, script_type, text)
  return { id = id, status = 'error', dependents = present(f[7]) }, calls_back
end
