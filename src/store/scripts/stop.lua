-- Stops a job: a job that does not run ends in `error` at once; a running job is marked, and
-- its actor is told.
--
-- ARGV: 1 id  2 retention  3 the message for the actor  4 boot that asks, or ''
--       5 the error of a job that waits  6 who asks, or ''  7 the rights of the caller
-- returns 'stopped'    it had not started; it is `error` now
--         'requested'  its actor has been told
--         'yours'      the boot that asks runs it
--         'unowned'    it runs, but names no actor that could be told
--         'ended'      it had ended before
--         'missing'    there is none that the caller may change
-- needs: caller stop_job

if not caller_may('change', ARGV[1]) then return 'missing' end
return stop_job(ARGV)
