-- The attempts of a job before its last one, in the field `attempts`: a JSON array of the latest of them, the
-- oldest first. The other fields tell the last attempt, so a job that ends at its first has no such field.
-- needs: names job

local hostname_of, note_attempt, correct, forget_end
do
  local ATTEMPTS_MAX, ATTEMPT_ERROR_BYTES, ATTEMPT_NAME_BYTES = 10, 300, 200
  local ATTEMPTS_BYTES_MAX = 65536
  -- The scripts of attempts leave room for what else the list has.
  local ATTEMPT_SCRIPT_BYTES, SCRIPTS_BYTES_MAX = 16384, 49152

  -- The machine of a boot; nil if it is unknown. An access list of an older version does not permit the key.
  function hostname_of(boot)
    local hostname = present(boot) and redis.pcall('HGET', BOOT_HOSTS, boot)
    return type(hostname) == 'string' and present(hostname) or nil
  end

  -- Cuts a text to some bytes. Bytes that are not UTF-8 then become `?`, as the hash of a job holds text.
  local function legible(text, bytes_max)
    text = present(text)
    if not text then return nil end
    if #text > bytes_max then
      while bytes_max > 0 and string.find(string.sub(text, bytes_max + 1, bytes_max + 1), '[\128-\191]') do
        bytes_max = bytes_max - 1
      end
      text = string.sub(text, 1, bytes_max)
    end
    if not string.find(text, '[\128-\255]') then return text end
    local rest = text
    for _, character in ipairs({ '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]',
      '[\225-\236\238\239][\128-\191][\128-\191]', '\237[\128-\159][\128-\191]',
      '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]',
      '\244[\128-\143][\128-\191][\128-\191]' }) do
      rest = string.gsub(rest, character, 'x')
    end
    return string.find(rest, '[\128-\255]') and string.gsub(text, '[\128-\255]', '?') or text
  end

  -- Adds the last attempt to the list before the fields that tell it change. `ended` is 'finished', 'error',
  -- 'crashed' as its actor died, or 'given_back' as its actor stopped.
  function note_attempt(id, ended, text, when)
    local f = read(id, 'attempts', 'attempt', 'started_at', 'actor', 'boot_id', 'hostname')
    local started_at = legible(f[3], ATTEMPT_NAME_BYTES)
    if not started_at then return end
    local attempts = {}
    if present(f[1]) then
      if #f[1] > ATTEMPTS_BYTES_MAX then return end
      attempts = json_table(f[1])
      -- A field of this name that another program wrote stays.
      if not attempts or type(attempts[#attempts]) ~= 'table' then return end
    end
    local before = attempts[#attempts]
    if before and before.started_at == started_at then return end
    attempts[#attempts + 1] = { attempt = tonumber(f[2]), started_at = started_at,
      ended_at = legible(when, ATTEMPT_NAME_BYTES), actor = legible(f[4], ATTEMPT_NAME_BYTES),
      hostname = hostname_of(f[5]) or legible(f[6], ATTEMPT_NAME_BYTES), ended = ended,
      error = legible(text, ATTEMPT_ERROR_BYTES) }
    while #attempts > ATTEMPTS_MAX do table.remove(attempts, 1) end
    redis.call('HSET', JOB .. id, 'attempts', cjson.encode(attempts))
  end

  -- Writes the script into the record of the last attempt, which ran it, before another replaces it.
  local function note_script(id)
    local f = read(id, 'attempts', 'script')
    if not present(f[1]) or not present(f[2]) or #f[1] > ATTEMPTS_BYTES_MAX then return end
    local list = json_table(f[1])
    local last = list and list[#list]
    if type(last) ~= 'table' or last.script then return end
    last.script = legible(f[2], ATTEMPT_SCRIPT_BYTES)
    local text = cjson.encode(list)
    for place = 1, #list do
      if #text <= SCRIPTS_BYTES_MAX then break end
      list[place].script = nil
      text = cjson.encode(list)
    end
    redis.call('HSET', JOB .. id, 'attempts', text)
  end

  -- Takes away how an ended job ended, as it runs again. `f` has its script_type, error, finished_at and output_key. Its
  -- other fields of the last run go too, and those that are named.
  function forget_end(id, status, f, ...)
    redis.call('LREM', DEAD .. f.script_type, 1, id)
    redis.call('PERSIST', JOB .. id)
    redis.pcall('EXPIRE', FILES .. id, 34560000)
    redis.call('DEL', REPLY .. id)
    -- An access list of an older version does not permit the key.
    if f.output_key then redis.pcall('DEL', OUTPUT .. id) end
    note_attempt(id, status, status == 'error' and f.error, f.finished_at)
    redis.call('HDEL', JOB .. id, 'hostname', 'crashes', 'postponed', 'error', 'output', 'output_key', 'exit_code', 'started_at', 'first_started_at', 'expires', 'expect_within', 'late_at', 'slow_at',
      'finished_at', 'actor', 'boot_id', 'run_at', 'delayed_since', 'stop_requested', 'progress', 'progress_text', 'unfinished_line', 'limits', 'held_by',
      'wait', 'waits', 'event', 'told_events', 'wait_ended_at', 'session_calls', 'session_call', ...)
  end

  -- Gives settings of a job that does not run new values: field, text, … from a place of a list on; an empty text
  -- takes a field away.
  function correct(id, list, from)
    for place = from, #list, 2 do
      local name, text = list[place], list[place + 1]
      if name == 'script' then note_script(id) end
      if text == '' then
        redis.call('HDEL', JOB .. id, name)
      else
        redis.call('HSET', JOB .. id, name, text)
      end
    end
  end
end
