-- Restores entries of the log of a restored job, in their order.
--
-- ARGV: 1 id  2 TTL of the log in ms  3 number of entries, then for each:
--       its id, number of fields and values, fields and values
-- returns the entries written: an entry that is there already is left out
-- needs: wrong_type

local log, written = LOG .. ARGV[1], 0
if redis.call('EXISTS', JOB .. ARGV[1]) == 0 then return 0 end
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
local last_ms, last_number = string.match(last and last[1] or '0-0', '^(%d+)-(%d+)$')
last_ms, last_number = tonumber(last_ms), tonumber(last_number)

local a = 4
for _ = 1, tonumber(ARGV[3]) do
  local ms, number = string.match(ARGV[a], '^(%d+)-(%d+)$')
  ms, number = tonumber(ms), tonumber(number)
  if ms and (ms > last_ms or ms == last_ms and number > last_number) then
    redis.call('XADD', log, ARGV[a], unpack(ARGV, a + 2, a + 1 + ARGV[a + 1]))
    last_ms, last_number = ms, number
    written = written + 1
  end
  a = a + 2 + ARGV[a + 1]
end
if written > 0 then redis.call('PEXPIRE', log, ARGV[2]) end
return written
