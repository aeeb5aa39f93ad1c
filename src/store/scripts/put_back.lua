-- Puts back an entry that a blocking pop took and its caller cannot use, at the front.
--
-- KEYS: the list
-- ARGV: 1 the entry
-- returns the length of the list
-- needs: sweep

despite_full_memory()
return redis.call('LPUSH', KEYS[1], ARGV[1])
