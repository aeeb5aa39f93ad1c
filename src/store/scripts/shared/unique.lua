-- The jobs that hold unique keys. A job holds a key under a name: the key, or, if the key belongs to a caller and
-- context, that scope, a line feed and the key.
-- needs: time names job reserved

-- Tells if a job is of a scope, as Rust writes scopes: `CALLER/CONTEXT`.
local function is_of_scope(id, scope, context)
  local function written(part)
    return (string.gsub(part or '', '[^%w_.@-]', function(c) return string.format('%%%02X', string.byte(c)) end))
  end
  local f = read(id, 'caller_id', 'context_id')
  return written(f[1] or '') .. '/' .. written(context or f[2] or '') == scope
end

-- Returns the name of the key of a job; nil if another program wrote the scope of others into its hash. The key of a session is
-- of its caller in every context.
local function unique_name(id, unique_key, scope)
  if not present(scope) then return unique_key end
  local is_own = is_of_scope(id, scope) or string.sub(scope, -1) == '/' and is_of_scope(id, scope, '')
  return is_own and scope .. '\n' .. unique_key or nil
end

-- Returns the job that holds a key for its `unique_for` after it has finished. A hold that lasts for longer than that is one of
-- before Redis's clock was set back: it is counted from now.
local function holder_for_a_time(key, id)
  local for_s = tonumber(string.match(read(id, 'unique_for')[1] or '', '^%d+%.?%d*$') or '')
  local for_ms = for_s and math.min(for_s, 315360000) * 1000
  if for_ms and redis.call('PTTL', key) > for_ms then redis.call('PEXPIRE', key, integer(for_ms)) end
  return id
end

-- Returns the job that holds a name: a job that has not ended, or that finished and holds it for a time
-- (`release_unique`). A key of a scope is also held by a job of that scope which has the bare name, as an older
-- version gave it.
local function holder_of(name)
  local held = UNIQUE .. name
  local holder = redis.call('GET', held)
  local scope, key = string.match(name, '^([^\n]+)\n(.+)$')
  if scope and not holder then
    held = UNIQUE .. key
    holder = redis.call('GET', held)
    if holder and not is_of_scope(string.gsub(holder, '^:', ''), scope) then holder = nil end
  end
  if not holder then return nil end
  if string.sub(holder, 1, 1) == ':' then return holder_for_a_time(held, string.sub(holder, 2)) end
  local status = read(holder, 'status')[1]
  if status and status ~= 'finished' and status ~= 'error' then return holder end
  if not status and is_reserved(holder) then return holder end
  return nil
end
