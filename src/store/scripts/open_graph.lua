-- Stores a batch; jobs are added to it as they are submitted.
--
-- ARGV: 1 id  2... fields and values
-- returns 1, or 0 if a graph or batch has this id
-- needs: graph_start time

return open_graph(ARGV[1], ARGV, 2, now_us()) and 1 or 0
