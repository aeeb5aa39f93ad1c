-- Writes and deletes objects of one context, all or none.
--
-- The head of an object is `version created_ms modified_ms`, a line end, and its terms in indexes, a
-- JSON array of field, term, field, term ... A field of words comes once per word.
--
-- ARGV: 1 context  2 limit on the objects of the context  3 number of changes, and for each
--       `set` or `delete`, type, id, expected version or '', creation time or '', body,
--       terms of every indexed field that the writer knows; then, if the changes of a message are to be
--       made once: the mark of the message, the digest of its contents, the time in s that it is known
-- returns {'ok', for each change: version now, 1 if it existed before}
--      or {'other'}: the mark belongs to a message with another digest
--      or {'stale', number of the change, version found}
--      or {'full'}
--      or {'fields', type, every field that has an index}: the terms of some were missing
-- needs: time

local context, objects_max, changes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local WIDTH = 7
local COUNTS, TOTAL = OSIS_COUNT .. context, '%'
local now_ms = math.floor(now_us() / 1000)

local function key_of(kind, object_type) return kind .. context .. ':' .. object_type end

-- Fields and terms of a head.
local function terms_of(head)
  return head and cjson.decode(string.match(head, '\n(.*)$') or '[]') or {}
end

-- The indexed fields per type. A type without objects takes those that its first writer names.
local indexed = {}
local function indexes_of(object_type)
  local fields = indexed[object_type]
  if not fields then
    fields = { new = redis.call('HLEN', key_of(OSIS_HEAD, object_type)) == 0, list = {} }
    if not fields.new then
      fields.list = redis.call('HKEYS', key_of(OSIS_STATE, object_type))
    end
    indexed[object_type] = fields
  end
  return fields
end

-- The results of a message whose changes were made before.
local mark, digest, ttl_s = unpack(ARGV, 4 + changes * WIDTH)
local done = mark and redis.call('GET', AMQP_DONE .. mark)
if done then
  if string.match(done, '^%S+') ~= digest then return { 'other' } end
  local before = { 'ok' }
  for number in string.gmatch(string.sub(done, #digest + 1), '%d+') do
    before[#before + 1] = tonumber(number)
  end
  return before
end

-- Checks all changes first: after the first write there is no way back.
local versions, added = {}, 0
for number = 1, changes do
  local at = 3 + (number - 1) * WIDTH
  local kind, object_type, id, expected = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local name = object_type .. '\0' .. id
  if not versions[name] then
    local head = redis.call('HGET', key_of(OSIS_HEAD, object_type), id)
    versions[name] = head and tonumber(string.match(head, '^%d+')) or 0
  end
  local found = versions[name]
  if expected ~= '' and tonumber(expected) ~= found then return { 'stale', number, found } end
  if kind == 'set' then
    local known, terms = {}, cjson.decode(ARGV[at + 7])
    for place = 1, #terms, 2 do known[terms[place]] = true end
    local fields = indexes_of(object_type)
    for _, field in ipairs(fields.list) do
      if not known[field] then return { 'fields', object_type, unpack(fields.list) } end
    end
    if fields.new then
      fields.list = {}
      for place = 1, #terms, 2 do fields.list[#fields.list + 1] = terms[place] end
    end
    if found == 0 then added = added + 1 end
    versions[name] = found + 1
  else
    if found > 0 then added = added - 1 end
    versions[name] = 0
  end
end
if added > 0 and (tonumber(redis.call('HGET', COUNTS, TOTAL)) or 0) + added > objects_max then
  return { 'full' }
end

local function count(object_type, number)
  if redis.call('HINCRBY', COUNTS, object_type, number) <= 0 then
    redis.call('HDEL', COUNTS, object_type)
    redis.call('DEL', key_of(OSIS_STATE, object_type))
    -- The next write in this script is to a type without objects.
    if indexed[object_type] then indexed[object_type].new = true end
  end
  if redis.call('HINCRBY', COUNTS, TOTAL, number) <= 0 then
    redis.call('DEL', COUNTS)
    redis.call('ZREM', OSIS_CONTEXTS, context)
  end
end

local function delete(object_type, id)
  local heads = key_of(OSIS_HEAD, object_type)
  local head = redis.call('HGET', heads, id)
  if not head then return 0, 0 end
  local terms = terms_of(head)
  for place = 1, #terms, 2 do
    local index = OSIS_INDEX .. context .. ':' .. object_type .. ':' .. terms[place]
    redis.call('ZREM', index, terms[place + 1] .. '\0' .. id)
  end
  redis.call('HDEL', heads, id)
  redis.call('HDEL', key_of(OSIS_BODY, object_type), id)
  redis.call('ZREM', key_of(OSIS_IDS, object_type), id)
  count(object_type, -1)
  return 0, 1
end

local function set(object_type, id, created_ms, body, encoded)
  local heads, states = key_of(OSIS_HEAD, object_type), key_of(OSIS_STATE, object_type)
  local head = redis.call('HGET', heads, id)
  local version, made = 0, nil
  if head then
    version, made = string.match(head, '^(%d+) (%-?%d+)')
  else
    made = created_ms ~= '' and created_ms or integer(now_ms)
    count(object_type, 1)
    redis.call('ZADD', OSIS_CONTEXTS, 0, context)
  end
  local has_index, fresh = {}, indexes_of(object_type)
  for _, field in ipairs(fresh.list) do
    has_index[field] = true
    if fresh.new then redis.call('HSET', states, field, 'ready') end
  end
  fresh.new = false
  local before, after, kept = {}, cjson.decode(encoded), {}
  local old = terms_of(head)
  for place = 1, #old, 2 do before[old[place] .. '\0' .. old[place + 1]] = old[place] end
  for place = 1, #after, 2 do
    local field, term = after[place], after[place + 1]
    if has_index[field] then
      local index = OSIS_INDEX .. context .. ':' .. object_type .. ':' .. field
      before[field .. '\0' .. term] = nil
      redis.call('ZADD', index, 0, term .. '\0' .. id)
      kept[#kept + 1] = field
      kept[#kept + 1] = term
    end
  end
  for entry, field in pairs(before) do
    local index = OSIS_INDEX .. context .. ':' .. object_type .. ':' .. field
    redis.call('ZREM', index, string.sub(entry, #field + 2) .. '\0' .. id)
  end
  local terms = #kept > 0 and cjson.encode(kept) or '[]'
  version = integer(version + 1)
  redis.call('HSET', heads, id, version .. ' ' .. made .. ' ' .. integer(now_ms) .. '\n' .. terms)
  redis.call('HSET', key_of(OSIS_BODY, object_type), id, body)
  redis.call('ZADD', key_of(OSIS_IDS, object_type), 0, id)
  return version, head and 1 or 0
end

local answer = { 'ok' }
for number = 1, changes do
  local at = 3 + (number - 1) * WIDTH
  local version, existed
  if ARGV[at + 1] == 'set' then
    version, existed = set(ARGV[at + 2], ARGV[at + 3], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7])
  else
    version, existed = delete(ARGV[at + 2], ARGV[at + 3])
  end
  answer[#answer + 1] = tonumber(version)
  answer[#answer + 1] = existed
end
if mark then
  local results = digest
  for number = 2, #answer do results = results .. ' ' .. integer(answer[number]) end
  redis.call('SET', AMQP_DONE .. mark, results, 'EX', ttl_s)
end
return answer
