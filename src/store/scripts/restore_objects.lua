-- Restores objects of one type and context with their versions and times, all or none.
--
-- ARGV: 1 context  2 type  3 number of fields with an index, then these fields
--       then the number of objects, and for each: id, `version created_ms modified_ms`,
--       terms of these fields as JSON, body
-- returns 'ok'; or the id that is taken

local context, object_type, fields = ARGV[1], ARGV[2], tonumber(ARGV[3])
local first = 4 + fields
local objects = tonumber(ARGV[first])
local of_type = context .. ':' .. object_type
for number = 0, objects - 1 do
  local id = ARGV[first + 1 + 4 * number]
  if redis.call('HEXISTS', OSIS_HEAD .. of_type, id) == 1 then return id end
end

for place = 4, 3 + fields do redis.call('HSET', OSIS_STATE .. of_type, ARGV[place], 'ready') end
redis.call('ZADD', OSIS_CONTEXTS, 0, context)
redis.call('HINCRBY', OSIS_COUNT .. context, object_type, objects)
redis.call('HINCRBY', OSIS_COUNT .. context, '%', objects)
for number = 0, objects - 1 do
  local a = first + 1 + 4 * number
  local id, head, terms, body = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  redis.call('HSET', OSIS_HEAD .. of_type, id, head .. '\n' .. terms)
  redis.call('HSET', OSIS_BODY .. of_type, id, body)
  redis.call('ZADD', OSIS_IDS .. of_type, 0, id)
  local own = cjson.decode(terms)
  for place = 1, #own, 2 do
    redis.call('ZADD', OSIS_INDEX .. of_type .. ':' .. own[place], 0, own[place + 1] .. '\0' .. id)
  end
end
return 'ok'
