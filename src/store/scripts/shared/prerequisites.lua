-- Prerequisites of jobs.
-- needs: names

-- Prefix, in a pending set, of a prerequisite that only has to end.
local ANY = '?'
-- Start of the error of a job that cannot run any more.
local PREREQUISITE_FAILED = 'prerequisite failed: '
-- Bytes of ids in the field `dependents`; further ids go to a list, as a field is rewritten whole.
local DEPENDENTS_FIELD_BYTES = 32768

-- The ids of a JSON array. Older programs also write `a,b`, one bare id, or a word for none.
local function list_of_ids(text)
  text = text or '[]'
  if not string.find(text, '^%s*[%[{]') then
    local ids = {}
    for id in string.gmatch(ABSENT[string.lower(text)] and '' or text, '[^,%s]+') do
      if legal_id(id) then ids[#ids + 1] = id end
    end
    return ids
  end
  local ok, ids = pcall(cjson.decode, text)
  if not ok or type(ids) ~= 'table' then return {} end
  local legal = {}
  for _, id in ipairs(ids) do
    if legal_id(id) then legal[#legal + 1] = id end
  end
  return legal
end

-- The id in an entry of a pending set.
local function prerequisite_of(entry)
  return string.sub(entry, 1, 1) == ANY and string.sub(entry, 2) or entry
end
