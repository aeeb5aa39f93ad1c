-- Removes a token of the API, or its old secret alone.
--
-- ARGV: 1 its name  2 '1' to remove only a secret that another one has replaced, else ''
-- returns 1, or 0 if there is none
-- needs: wrong_type

local removed = 0
local tokens = redis.call('HGETALL', TOKENS)
for at = 1, #tokens, 2 do
  local is_read, token = pcall(cjson.decode, tokens[at + 1])
  if is_read and type(token) == 'table' and token.name == ARGV[1] and (ARGV[2] == '' or token.replaced) then
    removed = redis.call('HDEL', TOKENS, tokens[at])
  end
end
return removed
