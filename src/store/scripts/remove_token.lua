-- Removes a token of the API.
--
-- ARGV: 1 its name
-- returns 1, or 0 if no token has this name
-- needs: wrong_type

local removed = 0
local tokens = redis.call('HGETALL', TOKENS)
for at = 1, #tokens, 2 do
  local is_read, token = pcall(cjson.decode, tokens[at + 1])
  if is_read and type(token) == 'table' and token.name == ARGV[1] then
    removed = redis.call('HDEL', TOKENS, tokens[at])
  end
end
return removed
