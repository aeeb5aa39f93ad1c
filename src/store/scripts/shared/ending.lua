-- Ends jobs.
-- needs: wrong_type time names job counters index ends events legacy wanted
-- rarely: rhailib amqp graph_end cron_end notify

-- `ready` is the reply as JSON, where its actor has made it: for a long reply, since to escape a
-- megabyte here takes 15 ms, or for an output that is not UTF-8.
-- `format` is nil if nobody has looked for it. With `holds` it waits for `push_replies`.
local function push_reply(id, status, text, ready, format, holds)
  local ttl_s = '60'
  if format == nil then format = redis.call('HGET', JOB .. id, 'reply_format') end
  format = present(format) or REPLY_FORMAT
  if string.lower(format) ~= 'plain' then
    local field = status == 'finished' and 'output' or 'error'
    text = ready or cjson.encode({ job_id = id, status = status, [field] = text })
  end
  local list = holds and OUTPUT .. id .. ':held' or REPLY .. id
  -- If the key has the wrong type, only the reply is lost.
  redis.call('RPUSH', list, text)
  redis.pcall('EXPIRE', list, ttl_s)
end

-- Sets the expiry of an ended job and returns, in ms, when it has expired for sure: by that the index
-- keeps the order of the ends. `seconds` is the retention of the job itself; `retention` is
-- 'DEFAULT_MS MAX_MS FAILED_MS', the last for a job that ended in `error`.
-- The log has the default already. `has_files` is false if the job is known to have no files; `is_apart` is
-- true if its output has a key of its own.
local set_expiry
do
  local known, default_ms, max_ms, failed_ms

  function set_expiry(id, status, seconds, retention, has_files, is_apart)
    -- Redis would spend long on jobs that expire together. So each is kept for longer, by a part of this
    -- share of its retention, and of at most an hour; its id decides this part.
    local spread_share, spread_max_ms = 0.05, 3600000
    if known ~= retention then
      known, default_ms, max_ms, failed_ms = retention, string.match(retention, '^(%d+) (%d+) (%d+)$')
      default_ms, max_ms, failed_ms = tonumber(default_ms), tonumber(max_ms), tonumber(failed_ms)
    end
    local for_ms = status == 'error' and failed_ms or default_ms
    local is_own = present(seconds)
    if is_own and string.match(seconds, '^%d+%.?%d*$') then
      for_ms = math.max(math.floor(math.min(tonumber(seconds) * 1000, max_ms)), 1)
    end
    local part = tonumber(string.sub(redis.sha1hex(id), 1, 4), 16) / 65536
    local spread_ms = math.floor(math.min(for_ms * spread_share, spread_max_ms))
    local own_ms = for_ms + math.floor(spread_ms * part)
    redis.call('PEXPIRE', JOB .. id, own_ms)
    if is_apart then redis.call('PEXPIRE', OUTPUT .. id, own_ms) end
    if has_files ~= false then redis.pcall('PEXPIRE', FILES .. id, own_ms) end
    if is_own or for_ms ~= default_ms then redis.pcall('PEXPIRE', LOG .. id, own_ms) end
    return for_ms + spread_ms
  end
end

-- Gives back the unique key of a job, or the name of its hold. A job that has finished at a time keeps
-- it for its `unique_for`: a colon marks that.
local function release_unique(id, unique_key, finished_at)
  if not present(unique_key) then return end
  local f = read(id, 'unique_scope', 'unique_for', 'created_at')
  local scope = present(f[1]) and f[1] .. '\n' or ''
  local key = UNIQUE .. (string.sub(unique_key, 1, #scope) == scope and '' or scope) .. unique_key
  local holder = redis.call('GET', key)
  if holder ~= id and holder ~= ':' .. id then return end
  local seconds = tonumber(string.match(f[2] or '', '^%d+%.?%d*$') or '') or 0
  local until_us = not_ahead(microseconds(f[3]), finished_at or 0) + math.min(seconds, 315360000) * 1000000
  local left_ms = finished_at and math.floor((until_us - finished_at) / 1000) or 0
  if left_ms > 0 then
    redis.call('SET', key, ':' .. id, 'PX', integer(left_ms))
  else
    redis.call('DEL', key)
  end
end

-- Enters an ended job into the index of its state, and into the index of its end: into `entries`, which the caller writes, if
-- not nil.
local function enter_ended(id, status, word, script_type, at, expiry, entries)
  if not entries then
    enter(status, script_type, id, expiry)
    redis.call('ZADD', index_of('ended:' .. word, script_type), integer(at), id)
    return
  end
  register(TYPES, script_type)
  for index, score in pairs({
    [index_of(status, script_type)] = expiry, [index_of('ended:' .. word, script_type)] = at,
  }) do
    local of_index = entries[index] or {}
    entries[index] = of_index
    of_index[#of_index + 1] = integer(score)
    of_index[#of_index + 1] = id
  end
end

-- Ends a job in `finished` or `error`. `job` holds its script_type, reply, unique_key, retention,
-- ready_reply, has_files, is_dead, hostname and is_apart (`text` is then the key of its output), which may be nil; graph_id, cron and
-- reply_format, which are nil only if nobody has looked for them; holds, if its reply waits; and entries, as `enter_ended` has it.
-- The caller removes it from the index of the state before, and tells its dependents. Returns true if
-- `settle` has callbacks of its graph to start.
local function end_job(id, job, status, text, exit_code, at, retention)
  local when = rfc3339(at)
  local text_field = job.is_apart and 'output_key' or status == 'finished' and 'output' or 'error'
  log_event(id, status, job.script_type)
  local fields = { 'status', status, text_field, text, 'finished_at', when, 'updated_at', when }
  if present(exit_code) then
    fields[#fields + 1] = 'exit_code'
    fields[#fields + 1] = exit_code
  end
  if job.hostname then
    fields[#fields + 1] = 'hostname'
    fields[#fields + 1] = job.hostname
  end
  redis.call('HSET', JOB .. id, unpack(fields))
  local for_ms = set_expiry(id, status, job.retention, retention, job.has_files, job.is_apart)
  enter_ended(id, status, end_of(status, text), job.script_type, at, at + for_ms * 1000, job.entries)
  count(job.script_type, status == 'finished' and 'finished' or intended_end(text) or 'failed')
  if wanted_kinds(at) then rarely().tell_outcome(id, job.script_type, status, text, job.is_dead, at) end
  if present(job.unique_key) then release_unique(id, job.unique_key, status == 'finished' and at) end
  if not says_no(job.reply) then
    push_reply(id, status, text, job.ready_reply, job.reply_format, job.holds)
    if LEGACY then reply_to_legacy(id, text) end
  end
  if string.sub(id, 1, #TASK_JOB) == TASK_JOB then
    -- Its output is text: Base64 if it is not UTF-8.
    if job.ready_reply then text = cjson.decode(job.ready_reply).output end
    rarely().answer_task_of(id, status, text, when)
  end
  if string.sub(id, 1, #AMQP_JOB) == AMQP_JOB then rarely().tell_brokers(id, at) end
  local cron = job.cron
  if cron == nil then cron = redis.call('HGET', JOB .. id, 'cron') end
  if present(cron) then rarely().note_cron_end(cron, id, status, text, at) end
  local graph = job.graph_id
  if graph == nil then graph = redis.call('HGET', JOB .. id, 'graph_id') end
  return present(graph) and rarely().note_in_graph(graph, id, status, text, at, for_ms)
end

-- Leaves a note on a job that ended, by default in `error` before any actor had it, for the log of a supervisor.
-- Without room or permission for it, only the line is missing.
local function note_end(id, script_type, text, how)
  local len_max, ttl_s = 10000, 3600
  local note = cjson.encode({ id, script_type or '', (how or 'ended in error: ') .. text })
  local length = redis.pcall('RPUSH', NOTES, note)
  if type(length) ~= 'number' then return end
  if length > len_max then redis.call('LTRIM', NOTES, -len_max, -1) end
  redis.call('EXPIRE', NOTES, ttl_s)
end

-- Adds a job that used up its attempts to the dead letters of its type.
local function add_dead_letter(id, script_type)
  local len_max = 10000
  count(script_type, 'dead')
  redis.call('RPUSH', DEAD .. script_type, id)
  redis.call('LTRIM', DEAD .. script_type, -len_max, -1)
end
