-- Builds the index on a field of a type in steps, or drops it. From `begin` on, every write of an
-- object updates the index, so a step adds only objects that are as they were read.
--
-- ARGV: 1 context  2 type  3 field  4 `begin`, `step` or `drop`
--       for a step: 5 expected progress: `@` and an id  6 progress after it: `@` and the last id
--       read, or `ready`, and for each object: id, version, JSON array of terms
-- returns the progress: `ready`, or `@` and an id; '' without an index

local kind, field, doing = ARGV[1] .. ':' .. ARGV[2], ARGV[3], ARGV[4]
local heads, states = OSIS_HEAD .. kind, OSIS_STATE .. kind
local index = OSIS_INDEX .. kind .. ':' .. field
local state = redis.call('HGET', states, field)

if doing == 'drop' then
  redis.call('HDEL', states, field)
  redis.call('UNLINK', index)
  return ''
end
if doing == 'begin' then
  if not state and redis.call('HLEN', heads) > 0 then
    state = '@'
    redis.call('HSET', states, field, state)
  end
  return state or ''
end
-- Another supervisor has gone further, or has dropped the index and restarted.
if state ~= ARGV[5] then return state or '' end
for place = 7, #ARGV, 3 do
  local id, version, own = ARGV[place], ARGV[place + 1], cjson.decode(ARGV[place + 2])
  local head = redis.call('HGET', heads, id)
  if head and string.match(head, '^%d+') == version then
    local first, encoded = string.match(head, '^(.-)\n(.*)$')
    local kept = {}
    local terms = cjson.decode(encoded)
    for at = 1, #terms, 2 do
      if terms[at] ~= field then
        kept[#kept + 1] = terms[at]
        kept[#kept + 1] = terms[at + 1]
      end
    end
    for _, term in ipairs(own) do
      kept[#kept + 1] = field
      kept[#kept + 1] = term
      redis.call('ZADD', index, 0, term .. '\0' .. id)
    end
    redis.call('HSET', heads, id, first .. '\n' .. cjson.encode(kept))
  end
end
redis.call('HSET', states, field, ARGV[6])
return ARGV[6]
