# What holds a job in the packaged unit, beside the unit itself: its sandbox.

PYTHON=hero@python-default-1

reads_no_secret() {
    inside mkdir -p "/run/systemd/system/$PYTHON.service.d"
    printf '[Service]\nSetCredential=probe:for-the-daemon-alone\n' |
        inside tee "/run/systemd/system/$PYTHON.service.d/probe.conf" > /dev/null
    inside systemctl daemon-reload
    inside systemctl restart $PYTHON
    local secrets="/run/credentials/$PYTHON.service/probe /etc/hero/hero.toml /etc/shadow
        /var/lib/hero /var/cache/hero /var/log/hero/jobs /run/hero /proc/1/environ"
    # They are there, so a job that does not see them is kept from them.
    for secret in $secrets; do inside test -e "$secret"; done
    submit_slow beside 4
    eventually 10 job_is beside started
    is "" may "
import os
for path in '''$secrets'''.split():
    try:
        print(path, os.listdir(path) if os.path.isdir(path) else open(path).read())
    except PermissionError:
        pass
    except OSError as error:
        print(path, error)"
    eventually 20 job_is beside finished
    inside rm -r "/run/systemd/system/$PYTHON.service.d"
    inside systemctl daemon-reload
    inside systemctl restart $PYTHON
}

reaches_no_redis() {
    is "held held" may '
import socket
def attempt(action):
    try:
        action()
    except PermissionError:
        return "held"
    return "reached"
print(attempt(lambda: socket.create_connection(("127.0.0.1", 6379))),
    attempt(lambda: socket.socket(socket.AF_UNIX).connect("/run/redis/redis-server.sock")))'
    is PONG redis ping
}

bounds_one_process() {
    configure bounds '[type.python.sandbox]
memory = "256MiB"
processes = 48'
    inside systemctl restart $PYTHON
    fails_by memory one-process 'bytearray(1 << 30)'
    fails_by processes forks '
import os, time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)'
    configure bounds
    inside systemctl restart $PYTHON
}

bounds_the_whole_job() {
    if has_cgroups; then
        bounds_it_where_it_has_a_group
    else
        says $PYTHON "jobs have no control groups of their own: "
        is next may 'print("next")'
        echo "= this machine has none to divide, and the daemon says so"
    fi
}

fills_only_its_own_folder() {
    local folder=/run/systemd/system/$PYTHON.service.d
    inside mkdir -p "$folder"
    printf '[Service]\nTemporaryFileSystem=\nTemporaryFileSystem=/run/hero:size=64m,mode=1777,nosuid,nodev\n' |
        inside tee "$folder/small.conf" > /dev/null
    inside systemctl daemon-reload
    inside systemctl restart $PYTHON
    says $PYTHON "the jobs of this process may fill "
    has "$(inside grep ' /run/hero ' "/proc/$(property $PYTHON MainPID)/mountinfo")" nosuid,nodev
    local free
    free=$(inside stat -f -c %a /run)
    is "No space left on device" may '
import os
try:
    with open("large", "wb") as file:
        while True: file.write(bytes(1 << 20))
except OSError as error:
    print(os.strerror(error.errno))'
    # 16 MiB less would be the job; the machine itself writes there too.
    [ "$(inside stat -f -c %a /run)" -gt $((free - 4096)) ]
    is next may 'print("next")'
    eventually 20 is "" in_folder_of_jobs $PYTHON find . -mindepth 2
    inside rm -r "$folder"
    inside systemctl daemon-reload
    inside systemctl restart $PYTHON
    has "$(inside grep ' /run/hero ' "/proc/$(property $PYTHON MainPID)/mountinfo")" nosuid,nodev
}

bounds_it_where_it_has_a_group() {
    configure bounds '[type.python.sandbox]
job_memory = "64MiB"
job_processes = 24'
    inside systemctl restart $PYTHON
    says $PYTHON "each job that is a process has a control group of its own"
    fails_by "job memory" all-memory "$MANY_THAT_HOLD_MEMORY"
    fails_by "job processes" all-forks '
import os, time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)'
    local folder
    folder=$(cgroup_folder $PYTHON)
    # The rest are the daemon, the interpreter it keeps ready, and the forks that wait.
    eventually 10 is 4 members "$folder"
    configure bounds
    inside systemctl reload $PYTHON
    is active property $PYTHON ActiveState
    inside systemctl stop $PYTHON
    inside test ! -e "$folder"
    inside systemctl start $PYTHON
}

says_what_holds() {
    local said
    said=$(inside hero check osis-default-1)
    has "$said" "python: sandbox: "
    case $said in *"python: sandbox: none"*) echo "no Landlock here: $said"; return 1 ;; esac
    has "$said" "unit osis-default-1: its process is sandboxed: it reads "
    # Landlock restricts ports from Linux 6.7 on.
    if inside dpkg --compare-versions "$(inside uname -r)" ge 6.7; then
        has "$said" "connects to TCP port 6379"
    else
        has "$said" "connects to any TCP port (the kernel cannot restrict ports)"
    fi
    says hero@osis-default-1 "this process is sandboxed: it reads "
    is 42 alice hero exec -t osis -e '40 + 2'
    echo "= $(echo "$said" | sed -n 's/^python: sandbox: //p')"
}

claim "a job reads no credential, no configuration, nothing of the daemon or of other jobs" reads_no_secret
claim "a job reaches Redis neither by TCP nor by a socket" reaches_no_redis
claim "a process over its memory and a fork bomb end, with the limit by its name; the next job runs" \
    bounds_one_process
claim "a job over its bounds as a whole ends so too; nothing stays in its group" \
    bounds_the_whole_job
claim "a job that fills its folder fills neither /run nor anything else; the next job runs" \
    fills_only_its_own_folder
claim "hero check and the journal say what holds of jobs, and of the process of osis" says_what_holds
