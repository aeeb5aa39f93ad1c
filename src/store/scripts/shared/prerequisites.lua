-- Prerequisites of jobs.
-- needs: names

-- Prefix, in a pending set, of a prerequisite that only has to end.
local ANY = '?'
-- Start of the error of a job that cannot run any more.
local PREREQUISITE_FAILED = 'prerequisite failed: '
-- Bytes of ids in the field `dependents`; further ids go to a list, as a field is rewritten whole.
local DEPENDENTS_FIELD_BYTES = 32768

local function list_of_ids(text)
  local ok, ids = pcall(cjson.decode, text or '[]')
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
