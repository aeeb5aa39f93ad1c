-- Reads objects of one type, head and body as they belong together.
--
-- ARGV: 1 context  2 type  3 limit on the bytes of all bodies but the first  4... ids
-- returns {number of ids read, for each object that exists: {id, head, body}}

local kind = ARGV[1] .. ':' .. ARGV[2]
local bytes_left = tonumber(ARGV[3])
local answer = { 0 }
for place = 4, #ARGV do
  local id = ARGV[place]
  local size = redis.call('HSTRLEN', OSIS_BODY .. kind, id)
  if #answer > 1 and size > bytes_left then break end
  bytes_left = bytes_left - size
  answer[1] = answer[1] + 1
  local head = redis.call('HGET', OSIS_HEAD .. kind, id)
  if head then
    answer[#answer + 1] = { id, head, redis.call('HGET', OSIS_BODY .. kind, id) or '{}' }
  end
end
return answer
