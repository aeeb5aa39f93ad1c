# Control groups of jobs: only on a machine that has them to divide, with
# a kernel before 6.12, where the group of a job goes with it.

PYTHON=hero@python-default-1
SHELL_UNIT=hero@bash-default-1

# Both units idle: the one of Python with the interpreter that it keeps ready and the forks that wait.
are_idle() {
    is 4 members "$(cgroup_folder $PYTHON)"
    is 1 members "$(cgroup_folder $SHELL_UNIT)"
}

# What an actor and its jobs hold on the machine, but for the rules for files of its next job, which
# come and go.
holdings() { # UNIT
    inside sh -c "echo \$(ls -d $(cgroup_folder "$1")/job-* 2> /dev/null | wc -l) groups, \
        \$(ps -u hero -o pid= | wc -l) processes, \$(in_folder_of_jobs "$1" ls -A | wc -l) folders, \
        \$(ls -l /proc/$(property "$1" MainPID)/fd | grep -vc landlock) descriptors"
}

bound_processes() { # NUMBER
    configure bounds "[type.python.sandbox]
job_memory = \"64MiB\"
job_processes = $1
read = [\"/proc\"]
[type.bash.sandbox]
job_memory = \"64MiB\"
job_processes = $1
read = [\"/proc\"]"
}

gets_groups() {
    has_cgroups
    bound_processes 24
    inside systemctl restart $PYTHON $SHELL_UNIT
    for unit in $PYTHON $SHELL_UNIT; do
        says $unit "each job that is a process has a control group of its own"
        is hero inside stat -c %U "$(cgroup_folder $unit)"
    done
    # The same from `hero check`, asked from where it would be so.
    output=$(inside systemd-run --quiet --pipe --wait -p User=hero -p "Delegate=memory pids" \
        hero check)
    has "$(echo "$output" | grep '^python: sandbox: ')" "each job in a control group of its own"
    eventually 20 are_idle
}

place_of() { # TYPE SCRIPT
    local place
    place=$(alice hero exec -t "$1" -e "$2")
    has "$place" "/hero@$1-default-1.service/job-"
    echo "$place"
}

are_born_there() {
    place_of bash 'read -r place < /proc/self/cgroup; echo "$place"'
    place_of python 'print(open("/proc/self/cgroup").read().strip())'
    is warm may 'import sys; print("warm" if "ctypes" in sys.modules else "cold")'
}

keeps_namespaces_restricted() {
    for unit in $PYTHON $SHELL_UNIT; do is yes property $unit RestrictNamespaces; done
}

# The daemon may write to its own group alone.
keeps_other_groups_read_only() {
    for unit in $PYTHON $SHELL_UNIT; do
        is yes property $unit ProtectControlGroups
        local pid
        pid=$(property $unit MainPID)
        inside nsenter -t "$pid" -m test -w "$(cgroup_folder $unit)"
        for other in /sys/fs/cgroup /sys/fs/cgroup/system.slice "$(cgroup_folder hero@supervisor)"; do
            exits 1 inside nsenter -t "$pid" -m test -w "$other"
        done
    done
}

leaves_the_others() {
    local daemon
    daemon=$(property $PYTHON MainPID)
    for id in beside-1 beside-2; do submit_slow $id 8; done
    eventually 20 job_is beside-2 started
    # A fork of the interpreter, and then what it starts; none takes more than one process may.
    fails_by "job memory" grouped-memory "$MANY_THAT_HOLD_MEMORY"
    has "$(alice hero job show grouped-memory)" "took more than its sandbox.job_memory allows"
    exits 1 alice hero exec -t bash --id grouped-shell --timeout 60s -e 'a=x; while :; do a=$a$a; done'
    is "job memory" job_field grouped-shell limit
    is next alice hero exec -t bash -e 'echo next'
    for id in beside-1 beside-2; do
        eventually 30 job_is $id finished
        ended_once $id
        is 1 job_field $id attempt
    done
    is "$daemon" property $PYTHON MainPID
    eventually 10 are_idle
}

holds_fork_bombs() {
    fails_by "job processes" grouped-forks '
import os, time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)'
    exits 1 alice hero exec -t python --timeout 3s -e '
import os
while True:
    try:
        if os.fork(): os.setsid()
    except OSError: pass'
    has "$output" timeout
    is next alice hero exec -t bash -e 'echo next'
    eventually 10 are_idle
}

kills_what_goes_away() {
    is end alice hero exec -t bash -e '(setsid sh -c "sleep 600 & sleep 600" > /dev/null 2>&1 &); echo end'
    is end may '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("end")'
    eventually 10 are_idle
}

all_finished() { # PREFIX
    local ended
    ended=$(seq 200 | sed "s/.*/hget hero:job:$1-& status/" | redis | grep -cx finished) || true
    is 200 echo "$ended"
}

leaves_nothing() { # TYPE UNIT SCRIPT
    local before
    before=$(holdings "$2")
    for number in $(seq 200); do
        echo "hset hero:job:$1-$number id $1-$number script \"$3\" status dispatched"
        echo "rpush hero:q:work:type:$1 $1-$number"
    done | redis > /dev/null
    eventually 180 all_finished "$1"
    eventually 20 are_idle
    eventually 20 is "$before" holdings "$2"
    echo "= $before"
}

# The job may take far more than its unit.
blames_the_unit_for_its_own_memory() {
    configure bounds '[job]
crash_limit = 2
[type.bash.sandbox]
job_memory = "1GiB"'
    inside systemctl restart $SHELL_UNIT
    eventually 20 inside systemctl --quiet is-active $SHELL_UNIT
    inside systemctl set-property --runtime $SHELL_UNIT MemoryMax=200M MemorySwapMax=0
    exits 1 alice hero exec -t bash --id unit-memory --timeout 60s -e 'a=x; while :; do a=$a$a; done'
    has "$(alice hero job show unit-memory)" "as its unit reached its MemoryMax; crash 2 of 2"
    is "unit memory" job_field unit-memory limit
    is 1 job_field unit-memory crashes
    says $SHELL_UNIT "claims no jobs while the machine is overloaded or full: out of memory"
    inside systemctl set-property --runtime $SHELL_UNIT MemoryMax=infinity MemorySwapMax=infinity
    configure bounds
    inside systemctl restart $SHELL_UNIT
    eventually 20 are_idle
    is next alice hero exec -t bash -e 'echo next'
}

# The forks that wait were made under the old ones, and are not for a job under the new ones.
takes_other_bounds() {
    bound_processes 12
    inside systemctl reload $PYTHON
    eventually 20 is 12 inside sh -c "sort -u $(cgroup_folder $PYTHON)/job-*/pids.max"
    eventually 20 are_idle
    is next may 'print("next")'
}

takes_its_groups_again() {
    submit_slow again 3
    eventually 20 job_is again started
    inside kill -KILL "$(property $PYTHON MainPID)"
    eventually 60 job_is again finished
    says $PYTHON "each job that is a process has a control group of its own"
    eventually 20 are_idle
}

goes_with_its_unit() {
    for unit in $PYTHON $SHELL_UNIT; do
        local folder
        folder=$(cgroup_folder $unit)
        inside test -e "$folder"
        inside systemctl stop $unit
        inside test ! -e "$folder"
    done
    configure bounds
    inside systemctl start $PYTHON
}

claim "both units and hero check say that each job has a control group" gets_groups
claim "jobs are in their groups as their scripts begin; those in Python are forks" are_born_there
claim "units with control groups keep RestrictNamespaces=yes" keeps_namespaces_restricted
claim "units with control groups can write to no group but their own" keeps_other_groups_read_only
claim "a job over its memory ends, in Python and bash, and says so; jobs beside it and after it run" \
    leaves_the_others
claim "fork bombs go no further than job_processes, and all of them are killed" holds_fork_bombs
claim "what forks twice and leaves its session is killed at the end of its job" kills_what_goes_away
claim "200 jobs in bash that each leave a process leave no group, process, folder or descriptor" \
    leaves_nothing bash $SHELL_UNIT 'setsid sleep 600 & echo x'
claim "200 jobs in Python that each leave a process leave none either" leaves_nothing python $PYTHON \
    'import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint(1)'
claim "a job killed for the memory of its unit is told so, and runs again as after a crash" \
    blames_the_unit_for_its_own_memory
claim "a reload sets other bounds, for the forks that wait too" takes_other_bounds
claim "after a kill the next daemon gives its jobs groups again" \
    takes_its_groups_again
claim "the groups are gone with the unit" goes_with_its_unit
