# Runs as type bash, once the configuration has it:
#
#     [type.bash]
#     engine = "command"
#     command = ["/bin/bash", "{script}"]
echo "looking at the disk for job $HERO_JOB_ID" >&2
df --output=pcent,target / | tail -n 1
