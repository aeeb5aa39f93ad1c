-- Reads one job for a backup, in one step: its hash, its place, the start of its log.
--
-- ARGV: 1 id  2 the queue where it was found, or ''  3 limit on the bytes of the hash
--       4 limit on the bytes of log entries, exceeded by one portion at most
-- returns {} if the job does not exist; its size if that exceeds the limit; or
--       { fields and values, TTL in ms or -1, queue or '', its score in its index or '',
--         pending prerequisites, TTL of the log in ms or less than 0, id of the last log entry or '',
--         log entries }
-- needs: wrong_type names routing job index

local id, size_max, log_max = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local LOG_PORTION = 10

local hash = redis.pcall('HGETALL', JOB .. id)
if hash.err or #hash == 0 then return {} end
-- An output with a key of its own is copied as one in the hash.
local output = redis.call('HEXISTS', JOB .. id, 'output') == 0 and redis.pcall('GET', OUTPUT .. id)
if type(output) == 'string' then
  hash[#hash + 1] = 'output'
  hash[#hash + 1] = output
end
local size = 0
for _, text in ipairs(hash) do size = size + #text end
if size > size_max then return size end

local f = read(id, 'status', 'script_type', 'group', 'instance', 'priority', 'actor', 'where')
local queue, order = '', ''
if f[1] == 'dispatched' then
  queue = present(ARGV[2]) or queue_of(f[2], f[3], f[4], f[5], f[7]) or ''
  order = redis.call('ZSCORE', READY .. queue, id) or redis.call('ZSCORE', HELD .. queue, id) or ''
elseif f[1] == 'finished' or f[1] == 'error' then
  order = redis.pcall('ZSCORE', index_of(f[1], type_of_job(f[2], f[6])), id)
  order = type(order) == 'string' and order or ''
end

local pending = redis.pcall('SMEMBERS', PENDING .. id)
if pending.err then pending = {} end

local entries, last = {}, redis.call('XREVRANGE', LOG .. id, '+', '-', 'COUNT', 1)[1]
local from, bytes = '-', 0
while last and bytes < log_max do
  local portion = redis.call('XRANGE', LOG .. id, from, '+', 'COUNT', LOG_PORTION)
  for _, entry in ipairs(portion) do
    entries[#entries + 1] = entry
    for _, text in ipairs(entry[2]) do bytes = bytes + #text end
    from = '(' .. entry[1]
  end
  if #portion < LOG_PORTION then break end
end
return { hash, redis.call('PTTL', JOB .. id), queue, order, pending, redis.call('PTTL', LOG .. id),
  last and last[1] or '', entries }
