# Runs as type bash: standard output is the job's output, standard error its log.
echo "checking the disk for job $HERO_JOB_ID" >&2
df --output=pcent,target / | tail -n 1
