-- The jobs that hold unique keys. A job holds a key under a name: the key, or, if the key belongs to a caller and
-- context, that scope, a line feed and the key.
-- needs: names job reserved

local function unique_name(unique_key, scope)
  return present(scope) and scope .. '\n' .. unique_key or unique_key
end

-- Tells if a job is of a scope, as Rust writes scopes: `CALLER/CONTEXT`.
local function is_of_scope(id, scope)
  local function written(part)
    return (string.gsub(part or '', '[^%w_.@-]', function(c) return string.format('%%%02X', string.byte(c)) end))
  end
  local f = read(id, 'caller_id', 'context_id')
  return written(f[1] or '') .. '/' .. written(f[2] or '') == scope
end

-- Returns the job that holds a name: a job that has not ended, or that finished and holds it for a time
-- (`release_unique`). A key of a scope is also held by a job of that scope which has the bare name, as an older
-- version gave it.
local function holder_of(name)
  local holder = redis.call('GET', UNIQUE .. name)
  local scope, key = string.match(name, '^([^\n]+)\n(.+)$')
  if scope and not holder then
    holder = redis.call('GET', UNIQUE .. key)
    if holder and not is_of_scope(string.gsub(holder, '^:', ''), scope) then holder = nil end
  end
  if not holder then return nil end
  if string.sub(holder, 1, 1) == ':' then return string.sub(holder, 2) end
  local status = read(holder, 'status')[1]
  if status and status ~= 'finished' and status ~= 'error' then return holder end
  if not status and is_reserved(holder) then return holder end
  return nil
end
