-- One page of the dead letters of a type, the newest first. Removes ids whose job is gone or was
-- retried.
--
-- ARGV: 1 script type  2 the last id of the page before, or ''  3 that id's place in the list
--       4 limit on rows  5 text that the error must contain, or ''
--       6 limit on the bytes of an error, then the names of further fields
-- returns { last id of this page or '' if it was removed, its place or -1 at the end,
--           for each: id, its place, error, the further fields }
-- needs: names job

local LOOKED_AT_PER_STEP = 1000
local list = DEAD .. ARGV[1]
local limit, wanted, error_len_max = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local names = { 'status', 'error' }
for number = 7, #ARGV do names[#names + 1] = ARGV[number] end

-- Letters added since then stand after it; removed ones before it have moved it.
local length = redis.pcall('LLEN', list)
local till = type(length) == 'number' and length or 0
if till > 0 and tonumber(ARGV[3]) >= 0 then
  till = ARGV[2] ~= '' and redis.call('LPOS', list, ARGV[2], 'RANK', -1)
    or math.min(till, tonumber(ARGV[3]))
end

local rows, last = {}, ''
local from = math.max(till - LOOKED_AT_PER_STEP, 0)
local ids = till > 0 and redis.call('LRANGE', list, from, till - 1) or {}
local place = till
for number = #ids, 1, -1 do
  if #rows >= limit then break end
  local id = ids[number]
  place, last = from + number - 1, ''
  local hash = legal_id(id) and redis.pcall('HMGET', JOB .. id, unpack(names)) or {}
  if canonical_status(hash[1]) ~= 'error' then
    redis.call('LREM', list, -1, id)
  else
    last = id
  end
  if last ~= '' and (wanted == '' or string.find(hash[2] or '', wanted, 1, true)) then
    local row = { id, tostring(place), string.sub(hash[2] or '', 1, error_len_max) }
    for field = 3, #names do row[field + 1] = hash[field] or '' end
    rows[#rows + 1] = row
  end
end
return { last, place > 0 and place or -1, rows }
