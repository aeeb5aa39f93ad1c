-- Submits jobs: dispatches, schedules or lets them wait. A refused job writes nothing.
--
-- ARGV: 1  'start' to dispatch the jobs, 'create' to only store them
--       2  retention, for a job that fails at once because a prerequisite has failed
--       3  number of jobs  4  the batch that they belong to, or ''
--       then for each job: id, script type, group, instance, priority, `where`, run_at in us or '',
--       unique key or '', number of prerequisites, these ('?' before a job that only has to end),
--       number of fields and values, these; the last four are 'status', '', 'created_at', ''
--       last: the rights of the caller
-- returns for each job two strings:
--       its new state, ''
--       'exists', ''                  its id is taken
--       'duplicate', id               this job holds its unique key; '' for one that the caller may not see
--       'unknown_prerequisite', id    there is none that the caller may see
--       'broken_queue', key           its work list, or the index of its state, has the wrong type
-- needs: caller submit_jobs

return submit_jobs(ARGV, RIGHTS)
