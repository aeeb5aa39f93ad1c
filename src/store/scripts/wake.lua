-- Passes on tokens that an actor got and has no use for.
--
-- ARGV: the queues
-- returns nothing
-- needs: sweep wake

despite_full_memory()
for _, queue in ipairs(ARGV) do wake(queue) end
