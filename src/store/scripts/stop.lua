-- Stops a job: a job that does not run ends in `error` at once; a running job is marked, and
-- its actor is told.
--
-- ARGV: 1 id  2 retention  3 the message for the actor  4 boot that asks, or ''
--       5 the error of a job that waits  6 who asks, or ''
-- returns 'stopped'    it had not started; it is `error` now
--         'requested'  its actor has been told
--         'yours'      the boot that asks runs it
--         'unowned'    it runs, but names no actor that could be told
--         'ended'      it had ended before
--         'missing'
-- needs: stop_job

return stop_job(ARGV)
