-- Stops a job: one that does not run ends in `error` at once; for one that runs the actor that
-- runs it is told.
--
-- ARGV: 1 id  2 retention  3 the message for the actor  4 boot that asks, or ''
-- returns 'stopped'    it had not started; it is `error` now
--         'requested'  its actor has been told
--         'yours'      the boot that asks runs it
--         'unowned'    it runs, but no actor that could be told is known
--         'ended'      it was terminal already
--         'missing'
-- needs: stop_job

return stop_job(ARGV)
