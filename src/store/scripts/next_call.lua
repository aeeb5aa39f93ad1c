-- Answers the call that a session has served, while its job is in the boot's running set since the claim of this
-- attempt, and returns the call that it serves next. A repeated step returns the same call.
--
-- ARGV: 1 boot  2 id  3 time of the claim in us  4 id of the call that was served, or ''  5 its answer as JSON
-- returns a word, and what it needs: 'lost' | 'none' | 'call', the call as JSON
-- needs: wrong_type job

local REPLY_TTL_S = 60
local boot, id, served = ARGV[1], ARGV[2], ARGV[4]
local score = tonumber(redis.call('ZSCORE', RUNNING .. boot, id) or nil)
if not score or score > tonumber(ARGV[3]) then return { 'lost', '' } end
local call = read(id, 'session_call')[1]
if call and served ~= '' then
  local ok, of_hash = pcall(cjson.decode, call)
  if not ok or type(of_hash) ~= 'table' or of_hash.id == served then
    redis.call('RPUSH', REPLY .. served, ARGV[5])
    redis.call('EXPIRE', REPLY .. served, REPLY_TTL_S)
    redis.call('HDEL', JOB .. id, 'session_call')
    call = nil
  end
end
if not call then return { 'none', '' } end
return { 'call', call }
