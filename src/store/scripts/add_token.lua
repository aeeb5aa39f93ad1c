-- Adds a token of the API. Expired ones are removed first.
--
-- ARGV: 1 the SHA-256 of the token in hexadecimal  2 its name  3 its record as JSON  4 the limit of tokens
-- returns 1, or 0 if a token has this name, or -1 if there are as many as there may be
-- needs: wrong_type time

local hash, name, record, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local now_s = now_us() / 1000000
local kept = 0
local tokens = redis.call('HGETALL', TOKENS)
for at = 1, #tokens, 2 do
  local is_read, token = pcall(cjson.decode, tokens[at + 1])
  local expires_s = is_read and type(token) == 'table' and tonumber(token.expires_s)
  if expires_s and expires_s <= now_s then
    redis.call('HDEL', TOKENS, tokens[at])
  else
    kept = kept + 1
    if is_read and type(token) == 'table' and token.name == name then return 0 end
  end
end
if kept >= most then return -1 end
redis.call('HSET', TOKENS, hash, record)
return 1
