-- Publishes a version of a script, rolls back to one, restores one from a backup, or deletes a script. A version has
-- three fields of the script's hash: definition:N, story:N and text:N. The definition has the digest of the text.
--
-- ARGV: 1 'publish' | 'rollback' | 'restore' | 'delete'  2 name
--       3 definition as JSON  4 text  5 story as JSON, which for all but 'delete' follows
--       6 'rollback': the version whose text and definition the new one has; 'restore': the number of the version
--       7 the limit of scripts  8 the number of versions that are kept  9 the bytes that they may have
--       10 'publish': '1' if it is from a file, which wins over what commands publish
-- returns two values, the second a version or 0:
--       'ok', the new version
--       'same', the latest version, which is the same: nothing was published
--       'missing'   the script, or the version to roll back to, does not exist
--       'file'      the script is from a file: it is changed there
--       'full'      there are too many scripts
-- needs: wrong_type

local action, name = ARGV[1], ARGV[2]
local key = SCRIPT .. name
local number = function(text) return tonumber(text or '') or 0 end
local head = redis.call('HGET', SCRIPTS, name)
local known = redis.call('HMGET', key, 'latest', 'oldest', 'bytes', 'file')
local latest, oldest, bytes = number(known[1]), number(known[2]), number(known[3])
local LEFT_TTL_S = 400 * 86400

if action == 'delete' then
  if not head then return { 'missing', 0 } end
  redis.call('HDEL', SCRIPTS, name)
  redis.call('DEL', key)
  -- A later script of this name has other versions: jobs name versions.
  redis.call('HSET', key, 'latest', latest)
  redis.call('EXPIRE', key, LEFT_TTL_S)
  return { 'ok', latest }
end

local definition, text, story = ARGV[3], ARGV[4], ARGV[5]
if action == 'rollback' then
  if not head then return { 'missing', 0 } end
  local of = redis.call('HMGET', key, 'definition:' .. ARGV[6], 'text:' .. ARGV[6])
  if not of[1] or not of[2] then return { 'missing', latest } end
  definition, text = of[1], of[2]
end
if action == 'restore' then
  if number(ARGV[6]) <= latest and head then return { 'same', latest } end
elseif known[4] == '1' and head and ARGV[10] ~= '1' then
  return { 'file', latest }
elseif head and redis.call('HGET', key, 'definition:' .. latest) == definition then
  redis.call('HSET', key, 'file', ARGV[10])
  return { 'same', latest }
end
if not head then
  if redis.call('HLEN', SCRIPTS) >= number(ARGV[7]) then return { 'full', 0 } end
  -- With the key goes the time after which it expires.
  redis.call('DEL', key)
  oldest, bytes = 0, 0
end

latest = action == 'restore' and number(ARGV[6]) or latest + 1
if oldest == 0 then oldest = latest end
bytes = bytes + #definition + #text + #story
redis.call('HSET', key, 'definition:' .. latest, definition, 'text:' .. latest, text, 'story:' .. latest, story)
local kept, most = number(ARGV[8]), number(ARGV[9])
-- A backup may have gaps: what is further back than that does not exist.
if oldest < latest - 2 * kept then oldest = latest - 2 * kept end
while oldest < latest and (latest - oldest >= kept or bytes > most) do
  local of = redis.call('HMGET', key, 'definition:' .. oldest, 'text:' .. oldest, 'story:' .. oldest)
  bytes = bytes - #(of[1] or '') - #(of[2] or '') - #(of[3] or '')
  redis.call('HDEL', key, 'definition:' .. oldest, 'text:' .. oldest, 'story:' .. oldest)
  oldest = oldest + 1
end
redis.call('HSET', key, 'latest', latest, 'oldest', oldest, 'bytes', bytes, 'file', ARGV[10])
redis.call('HSET', SCRIPTS, name,
  '{"version":' .. latest .. ',"story":' .. story .. ',"definition":' .. definition .. '}')
return { 'ok', latest }
