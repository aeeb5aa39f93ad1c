-- Returns the job that holds a unique key: one that has not ended, or that finished and holds it for a time
-- (`release_unique`).
-- needs: job reserved

local function holder_of(unique_key)
  local holder = redis.call('GET', UNIQUE .. unique_key)
  if not holder then return nil end
  if string.sub(holder, 1, 1) == ':' then return string.sub(holder, 2) end
  local status = read(holder, 'status')[1]
  if status and status ~= 'finished' and status ~= 'error' then return holder end
  if not status and is_reserved(holder) then return holder end
  return nil
end
