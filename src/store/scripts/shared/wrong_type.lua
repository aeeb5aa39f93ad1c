-- Lets a script go on when a key has the wrong type, which a foreign program or a person wrote. The
-- key counts as absent: a read finds nothing, a write is left out. A script that stopped at it would
-- leave its writes done, and its other jobs undone. It is noted in WRONG_TYPES, from where the
-- supervisor logs it.
--
-- First among the needs of a script, as the functions after it use this `redis`. A `pcall` is as
-- ever: its caller looks at the error itself.

local server = redis

local has_wrong_type = {}

-- Returns the answer of a command whose key is absent.
local function answer_without_key(command, key)
  if not has_wrong_type[key] then
    has_wrong_type[key] = true
    local length, len_max = server.pcall('ZCARD', WRONG_TYPES), 100
    if type(length) == 'number' and length < len_max then
      server.pcall('ZADD', WRONG_TYPES, 'NX', 0, key)
    end
  end
  if command == 'ZREMRANGEBYSCORE' then return 0 end
  local is_list = string.find(command, 'RANGE', 1, true) or string.find(command, 'RANDMEMBER', 1, true)
    or command == 'HMGET' or command == 'SMISMEMBER' or command == 'ZMSCORE'
  if is_list then return {} end
  local is_number = not string.find(command, 'GET', 1, true) and not string.find(command, 'POP', 1, true)
    and command ~= 'ZSCORE' and command ~= 'LPOS'
  return is_number and 0
end

local redis = {
  sha1hex = server.sha1hex,
  pcall = server.pcall,
  call = function(command, ...)
    local answer = server.pcall(command, ...)
    if type(answer) ~= 'table' or not answer.err then return answer end
    if string.find(answer.err, 'WRONGTYPE', 1, true) then
      return answer_without_key(command, ...)
    end
    -- Raises the error.
    local raised = server.call(command, ...)
    return raised
  end,
}
