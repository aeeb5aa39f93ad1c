-- Notes a job that a client waits for, if it stands in no index, so that a supervisor looks at it.
--
-- ARGV: 1 id
-- returns nothing
-- needs: unindexed

note_if_unindexed(ARGV[1])
