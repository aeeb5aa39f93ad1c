-- Notes how the jobs of a periodic job end, in a hash of its own, since actors may not change periodic jobs.
-- needs: wrong_type time names job

-- Tells if a job is one of the periodic job that its hash names, which any program may have written: by its id, which only a
-- supervisor and a backfill give, or as one that was run beside the schedule.
local function is_of_cron(name, id)
  local start = 'cron-' .. name .. '-'
  if string.sub(id, 1, #start) == start and string.find(id, '^%d%d%d%d%d%d%d%dT%d%d%d%d%d%dZ', #start + 1) then return true end
  local f = redis.pcall('HMGET', CRON .. name, 'ran_id', 'history')
  -- An access list of an older version does not permit the key.
  if f.err or f[1] == id then return true end
  -- A firing that was left out names the job in its place.
  for _, firing in ipairs(json_table(f[2]) or {}) do
    if firing.id == id and firing.did == 'fired' then return true end
  end
  return false
end

-- Notes the end of a job of the periodic job `name`, as its hash has it, or of a batch of it, with its start. One that a
-- person stopped, or that the next firing replaced, tells nothing. A success moves the time from which the periodic job is overdue: a supervisor has
-- left in `twice_us` how long two of its firings take.
local function note_cron_end(name, id, status, text, at, began)
  local ttl_s, why_bytes_max, grace_us = 400 * 86400, 200, 60000000
  if #name > 32 or not string.match(name, '^[a-z0-9][a-z0-9_-]*$') then return end
  if status == 'error' and intended_end(text) then return end
  if not is_of_cron(name, id) then return end
  local key = CRON_ENDED .. name
  local f = redis.pcall('HMGET', key, 'twice_us', 'took_us')
  -- An access list of an older version does not permit the key.
  if f.err then return end
  local started = microseconds(began or read(id, 'started_at')[1])
  local took = started > 0 and math.max(at - started, 0) or tonumber(f[2] or '') or 0
  local fields = { 'took_us', integer(took) }
  local function add(name_of_field, value)
    fields[#fields + 1] = name_of_field
    fields[#fields + 1] = value
  end
  if status == 'finished' then
    add('succeeded_us', integer(at))
    add('succeeded_id', id)
    local twice = tonumber(f[1] or '')
    if twice then add('overdue_us', integer(at + twice + took + grace_us)) end
  else
    add('failed_us', integer(at))
    add('failed_id', id)
    add('failed_why', string.sub(text or '', 1, why_bytes_max))
  end
  redis.call('HSET', key, unpack(fields))
  redis.call('EXPIRE', key, ttl_s)
end
