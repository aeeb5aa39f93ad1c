-- Stores jobs and sends each where it belongs: to its queue, the schedule, or to wait for its
-- prerequisites. Nothing of a job that is refused is written.
--
-- ARGV: 1  'start' to send the jobs on their way, 'create' to only store them
--       2  retention, for a job that fails at once because a prerequisite has failed
--       3  how many jobs
--       then for each job: id, script type, group, instance, priority, run_at in us or '',
--       unique key or '', how many prerequisites, these ('?' before one
--       that only has to end), how many fields and values, these; the
--       last four are 'status', '', 'created_at', ''
-- returns for each job two strings:
--       the state it is in now, ''
--       'exists', ''                  its id is taken
--       'duplicate', id               the job with its unique key is still on its way
--       'unknown_prerequisite', id
--       'broken_queue', key           its work list is a key of another type
-- needs: submit_jobs

return submit_jobs(ARGV)
