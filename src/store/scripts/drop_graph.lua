-- Deletes a graph or batch as an object. Its jobs stay.
--
-- ARGV: 1 id
-- returns 1 if there was one
redis.call('ZREM', GRAPHS, ARGV[1])
return redis.call('DEL', GRAPH .. ARGV[1], GRAPH_JOBS .. ARGV[1]) > 0 and 1 or 0
