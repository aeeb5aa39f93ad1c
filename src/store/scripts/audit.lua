-- Adds a record of a change by a person or program. Records that are too old go first; there are at most so many.
--
-- ARGV: 1 the limit of records  2 the time that they are kept, in ms  3 who  4 what  5 to what  6 from where
--       7 entrance
-- returns 1
-- needs: time

local since = math.floor(now_us() / 1000) - tonumber(ARGV[2])
local oldest = redis.call('XRANGE', AUDIT, '-', '+', 'COUNT', 1)[1]
local is_old = oldest and tonumber(string.match(oldest[1], '^%d+')) < since
-- One call trims by number or by age. A later one trims by number again, once nothing is too old.
redis.call('XADD', AUDIT, is_old and 'MINID' or 'MAXLEN', '=', is_old and string.format('%d', since) or ARGV[1],
  '*', 'who', ARGV[3], 'what', ARGV[4], 'to', ARGV[5], 'from', ARGV[6], 'through', ARGV[7])
return 1
