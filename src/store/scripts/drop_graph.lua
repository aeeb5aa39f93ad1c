-- Deletes a graph or batch as an object, or takes its callbacks and notifications away. Its jobs stay.
--
-- ARGV: 1 id  2 'callbacks' to leave the rest, else ''  3 the rights of the caller
-- returns 1 if there was one that the caller may change
-- needs: caller

if not caller_may_change_graph(ARGV[1]) then return 0 end
if ARGV[2] == 'callbacks' then return redis.call('HDEL', GRAPH .. ARGV[1], 'callbacks', 'notify') > 0 and 1 or 0 end
redis.call('ZREM', GRAPHS, ARGV[1])
return redis.call('DEL', GRAPH .. ARGV[1], GRAPH_JOBS .. ARGV[1]) > 0 and 1 or 0
