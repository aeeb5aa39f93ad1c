# What jobs can and cannot do inside the hardened unit, and what they leave in the journal.

journal_tells_the_story() {
    local story
    alice hero submit --id story-1 -t osis --caller alice -e '40 + 2' > /dev/null
    is 42 alice hero job wait story-1
    eventually 5 has_lines 2 inside journalctl --no-pager --output=cat JOB_ID=story-1
    story=$(inside journalctl --no-pager --output=json JOB_ID=story-1)
    for field in '"JOB_ID":"story-1"' '"SCRIPT_TYPE":"osis"' '"GROUP":"default"' \
        '"INSTANCE":' '"ATTEMPT":' '"CALLER_ID":"alice"' \
        '"_SYSTEMD_UNIT":"hero@osis-default-1.service"'; do
        has "$story" "$field"
    done
    lacks "$story" "40 + 2"
    story=$(inside journalctl --no-pager --output=cat JOB_ID=story-1)
    has "$story" "job story-1 of osis starts from queue type:osis; submitted "
    has "$story" "job story-1 of osis finished in "
}

journal_finds_a_trace() {
    local trace=4bf92f3577b34da6a3ce929d0e0e4736 story
    alice hero submit --id traced-1 -t osis --traceparent "00-$trace-00f067aa0ba902b7-01" -e '40 + 2' > /dev/null
    alice hero submit --id traced-2 -t osis -e '40 + 2' > /dev/null
    is 42 alice hero job wait traced-1
    is 42 alice hero job wait traced-2
    eventually 5 has_lines 2 inside journalctl --no-pager --output=cat "TRACE_ID=$trace"
    story=$(inside journalctl --no-pager --output=json "TRACE_ID=$trace")
    has "$story" '"JOB_ID":"traced-1"'
    lacks "$story" traced-2
}

journal_tells_of_a_retry() {
    local story
    alice hero submit --id story-2 -t osis --delay 1s --retries 1 -e 'throw "no"' > /dev/null
    exits 1 alice hero job wait story-2
    eventually 5 has_lines 6 inside journalctl --no-pager --output=cat JOB_ID=story-2
    story=$(inside journalctl --no-pager --output=cat JOB_ID=story-2)
    has "$story" "job story-2 of osis is due: dispatched to queue type:osis"
    has "$story" "; it is retried in "
    has "$story" ", attempt 2; it is a dead letter: "
}

journal_tells_of_a_failed_prerequisite() {
    alice hero submit --id story-5 -t osis --delay 1s -e 'throw "no"' > /dev/null
    alice hero submit --id story-6 -t osis --after story-5 -e '1' > /dev/null
    exits 1 alice hero job wait story-6
    eventually 10 has_lines 1 inside journalctl --no-pager --output=cat JOB_ID=story-6
    has "$(inside journalctl --no-pager --output=cat JOB_ID=story-6)" \
        "job story-6 of osis ended in error: prerequisite failed: story-5"
}

flood_leaves_the_journal_whole() {
    local began
    began=$(inside date +%s)
    alice sh -c "yes '{\"script_type\":\"osis\",\"script\":\"1\"}' | head -n 20000 \
        | hero submit --batch - --ids | tail -n 1 | xargs hero job wait" > /dev/null
    exits 1 alice hero exec --id story-3 -t osis -e 'throw "after the flood"'
    eventually 5 has_lines 1 inside journalctl --no-pager --output=cat JOB_ID=story-3
    lacks "$(inside journalctl --no-pager --output=cat -u systemd-journald --since "@$began")" "Suppressed"
}

fatal_error_has_priority_err() {
    inside systemctl start hero@nosuch 2> /dev/null || true
    eventually 10 has_lines 1 inside journalctl --no-pager --output=cat -p err -u hero@nosuch -g nosuch
    inside systemctl reset-failed hero@nosuch
}

has_lines() { # NUMBER COMMAND...
    local number=$1
    shift
    [ "$("$@" | wc -l)" -ge "$number" ]
}

runs_every_type() {
    inside systemctl start hero@sal-default-1
    is 42 alice hero exec -t osis -e '40 + 2'
    is Linux alice hero exec -t sal -e 'let said = run_command("uname -s").stdout; said.trim(); said'
    is 42 may 'print(40 + 2)'
    configure bash '[type.bash]
engine = "command"
command = ["/bin/bash", "{script}"]'
    inside systemctl start hero@bash-default-1
    is "hero hero" alice hero exec -t bash -e 'echo "$(id -un) $(id -gn)"'
    inside systemctl stop hero@sal-default-1 hero@bash-default-1
    configure bash
}

builds_and_runs_programs() {
    is built may '
import os, subprocess
with open("program", "w") as f: f.write("#!/bin/sh\necho built\n")
os.chmod("program", 0o755)
print(subprocess.run(["./program"], capture_output=True, text=True, check=True).stdout, end="")'
}

cannot_write() { # FILE
    exits 1 may "open('$1', 'w')"
    case $output in
    *"Read-only file system"* | *"Permission denied"* | *"No such file"*) ;;
    *) echo "another error: $output"; return 1 ;;
    esac
}

is_confined_by_the_unit() {
    for file in /etc/hero/hero.toml /usr/bin/x /boot/x /home/alice/x /root/x /proc/sys/kernel/hostname \
        /tmp/a /var/lib/hero/a /var/log/hero/jobs/a; do
        cannot_write "$file"
    done
    may 'open("a", "w")'
    is 0 may '
import os
seen = os.path.exists("/home/alice") or os.path.exists("/dev/sda") or os.path.exists("/dev/mem")
print(int(seen))'
    # CAP_CHOWN and all other capabilities are gone, also in a user namespace of the job.
    is 0 may '
import ctypes
in_bounds = ctypes.CDLL(None).prctl
print(sum(in_bounds(23, capability, 0, 0, 0) == 1 for capability in range(41)))'
}

can_sandbox_children() {
    # The kernel may have no Landlock; what must not be is that the filter refuses it.
    is fine may '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
abi = libc.syscall(444, None, 0, 1)
error = ctypes.get_errno()
print("fine" if abi >= 1 or error == 95 else f"landlock: {abi}, error {error}")'
    is fine may '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
action = ctypes.c_uint32(0x7fff0000)
done = libc.syscall(317, 2, 0, ctypes.byref(action))
print("fine" if done == 0 else f"seccomp: error {ctypes.get_errno()}")'
}

writes_log_files() {
    redis hset hero:job:log-1 script 'import sys; print("kept", file=sys.stderr)' \
        status dispatched log_path /var/log/hero/jobs/log-1.log
    redis rpush hero:q:work:type:python log-1
    eventually 20 job_is log-1 finished || { job_field log-1 error; return 1; }
    is kept inside sed 's/.* //' /var/log/hero/jobs/log-1.log
    is "640 hero hero" inside stat -c '%a %U %G' /var/log/hero/jobs/log-1.log
    redis hset hero:job:log-2 script 'print(1)' status dispatched log_path /var/lib/hero/x.log
    redis rpush hero:q:work:type:python log-2
    eventually 20 job_is log-2 error
    has "$(job_field log-2 error)" log_path
}

rotates_log_files() {
    inside logrotate --force /etc/logrotate.d/hero
    inside test -e /var/log/hero/jobs/log-1.log.1
    is "" inside find /var/log/hero/jobs -name log-1.log
}

claim "journalctl JOB_ID=… tells one job's story, without its script" journal_tells_the_story
claim "journalctl TRACE_ID=… finds the jobs of one trace, and no others" journal_finds_a_trace
claim "the journal tells of the schedule, the retry and the dead letter of a job" journal_tells_of_a_retry
claim "the journal tells by its own id of a job that failed with its prerequisite" \
    journal_tells_of_a_failed_prerequisite
claim "20 000 quick jobs make the journal drop no line of a failure" flood_leaves_the_journal_whole
claim "a unit that cannot start says why with priority err" fatal_error_has_priority_err
claim "osis, sal, python and a type of the operator's own run in their units" runs_every_type
claim "a job can build a program in its folder and start it" builds_and_runs_programs
claim "a job cannot write to the system, nor see home folders and devices" is_confined_by_the_unit
claim "the unit allows its jobs to be sandboxed further by Landlock and seccomp" can_sandbox_children
claim "a job's log file is written inside the folder for it alone" writes_log_files
claim "logrotate rotates the log files of jobs" rotates_log_files
