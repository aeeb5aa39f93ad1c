-- Builds the index on a field of a type, some objects at a time, or takes it away. From `begin` on
-- whoever writes an object puts it into the index himself, so each step has only to bring in what
-- has stayed as it was read.
--
-- ARGV: 1 context  2 type  3 field  4 `begin`, `step` or `drop`
--       for a step: 5 how far the index must be: `@` and an id  6 how far it is then: `@` and the
--       last id that was looked at, or `ready`, and for each object: id, version, term
-- returns how far the index is: `ready`, or `@` and an id; '' if there is none

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
-- Somebody else is further, or has taken the index away and begun anew: what was read for another
-- step must not stand for this one.
if state ~= ARGV[5] then return state or '' end
for place = 7, #ARGV, 3 do
  local id, version, term = ARGV[place], ARGV[place + 1], ARGV[place + 2]
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
    kept[#kept + 1] = field
    kept[#kept + 1] = term
    redis.call('HSET', heads, id, first .. '\n' .. cjson.encode(kept))
    redis.call('ZADD', index, 0, term .. '\0' .. id)
  end
end
redis.call('HSET', states, field, ARGV[6])
return ARGV[6]
