-- Adds a second secret of a token of the API, with the rights of the first, which is marked as replaced.
--
-- ARGV: 1 the SHA-256 of the new secret in hexadecimal  2 the name of the token  3 the time as text  4 its creator
-- ARGV: 5 the end of the new secret in seconds since the epoch, or empty for the end of the old one
-- returns 1, or 0 if no token has this name, or -1 if an old secret of it is still valid
-- needs: wrong_type

local found, record
local tokens = redis.call('HGETALL', TOKENS)
for at = 1, #tokens, 2 do
  local is_read, token = pcall(cjson.decode, tokens[at + 1])
  if is_read and type(token) == 'table' and token.name == ARGV[2] then
    if found then return -1 end
    found, record = tokens[at], token
  end
end
if not found then return 0 end
record.replaced = true
redis.call('HSET', TOKENS, found, cjson.encode(record))
record.replaced, record.created_at, record.created_by = nil, ARGV[3], ARGV[4]
if ARGV[5] ~= '' then record.expires_s = tonumber(ARGV[5]) end
redis.call('HSET', TOKENS, ARGV[1], cjson.encode(record))
return 1
