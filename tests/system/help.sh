# The functions of the claims.

passed=0
failed=0
# The lines of the claims that failed.
failures=

# The units that every claim finds running, and leaves so.
UNITS="hero@supervisor hero@osis-default-1 hero@python-default-1"

# claim TEXT FUNCTION [ARG...]: holds if the function succeeds to its last command.
claim() {
    local text=$1 log=$run_dir/claim began=$SECONDS status
    shift
    set +e
    (
        set -eu
        "$@"
    ) > "$log" 2>&1
    status=$?
    set -e
    if [ "$status" = 0 ]; then
        passed=$((passed + 1))
        # The last line of a claim that begins with "=" is worth reading.
        echo "ok   $text$(sed -n 's/^= \(.*\)/: \1/p' "$log" | tail -n 1) ($((SECONDS - began)) s)"
    else
        failed=$((failed + 1))
        echo "FAIL $text (after $((SECONDS - began)) s)"
        failures="${failures}failed: $text
"
        sed 's/^/     | /' "$log" | tail -n 20
        if [ -n "${HERO_SYSTEM_TEST_JOURNAL:-}" ]; then
            inside journalctl --no-pager -n 40 -o short-precise | sed 's/^/     # /'
        fi
        tidy_up > /dev/null 2>&1 || true
    fi
}

# Removes the remains of a failed claim, so that the next one has a chance.
tidy_up() {
    inside sh -c 'rm -f /etc/hero/hero.toml.d/*.toml; systemctl reset-failed'
    inside systemctl start redis-server
    # shellcheck disable=SC2086
    inside timeout 60 systemctl start $UNITS
}

# eventually SECONDS COMMAND...: waits until the command succeeds.
eventually() {
    local bound=$1 end said
    shift
    end=$((SECONDS + bound))
    until said=$("$@" 2>&1); do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "not within $bound s: $*: $said"
            return 1
        fi
        sleep 0.1
    done
}

# throughout SECONDS COMMAND...: the command succeeds all the time.
throughout() {
    local end=$((SECONDS + $1))
    shift
    while [ "$SECONDS" -lt "$end" ]; do
        "$@" > /dev/null 2>&1 || { echo "not any more: $*"; return 1; }
        sleep 0.2
    done
}

# is EXPECTED COMMAND...: the command prints just that.
is() {
    local expected=$1 got
    shift
    got=$("$@")
    [ "$got" = "$expected" ] || { echo "$*: expected '$expected', got '$got'"; return 1; }
}

# exits CODE COMMAND...: the command ends with that code; its output is kept in $output.
exits() {
    local expected=$1 status=0
    shift
    output=$("$@" 2>&1) || status=$?
    [ "$status" = "$expected" ] || {
        echo "$*: expected exit code $expected, got $status: $output"
        return 1
    }
}

has() {
    case $1 in *"$2"*) ;; *) echo "no '$2' in: $1"; return 1 ;; esac
}

lacks() {
    case $1 in *"$2"*) echo "'$2' in: $1"; return 1 ;; *) ;; esac
}

property() { # UNIT PROPERTY
    inside systemctl show -P "$2" "$1"
}

redis() {
    inside redis-cli --raw "$@"
}

# As an ordinary user who is in the group hero.
alice() {
    inside runuser -u alice -- "$@"
}

may() { # SCRIPT: a Python job succeeds
    alice hero exec -t python -e "$1"
}

says() { # UNIT TEXT
    has "$(inside journalctl --no-pager --output=cat _SYSTEMD_INVOCATION_ID="$(property "$1" InvocationID)")" "$2"
}

fails_by() { # LIMIT ID SCRIPT: a Python job
    exits 1 alice hero exec -t python --id "$2" --timeout 30s -e "$3"
    is "$1" job_field "$2" limit
    is next may 'print("next")'
}

# A Python job of many processes; none takes more memory than one may.
MANY_THAT_HOLD_MEMORY='
import os, time
for _ in range(16):
    if os.fork() == 0:
        os.setsid()
        hold = bytearray(b"x") * (16 << 20)
        time.sleep(600)
time.sleep(600)'

# Whether the machine counts memory and processes for unified control groups.
has_cgroups() {
    inside sh -c 'grep -qw memory /sys/fs/cgroup/cgroup.controllers 2> /dev/null'
}

# Where the unit's control group is.
cgroup_folder() { # UNIT
    echo "/sys/fs/cgroup$(property "$1" ControlGroup)"
}

# Runs a command in the folder with the folders of running jobs, which only the unit sees.
in_folder_of_jobs() { # UNIT COMMAND...
    local pid
    pid=$(property "$1" MainPID)
    shift
    # nsenter itself would look for the folder outside.
    inside nsenter -t "$pid" -m sh -c 'cd /run/hero && "$@"' sh "$@"
}

# How many processes are in a control group and in those right below it.
members() { # FOLDER
    inside sh -c "cat $1/cgroup.procs $1/*/cgroup.procs | wc -l"
}

job_field() { # ID FIELD
    redis hget "hero:job:$1" "$2"
}

job_is() { # ID STATUS
    is "$2" job_field "$1" status
}

unit_is() { # UNIT STATE
    is "$2" property "$1" ActiveState
}

# boot_of TYPE-GROUP-INSTANCE: the boot id in its presence.
boot_of() {
    redis get "hero:meta:actor:inst:$(echo "$1" | tr - :)" |
        sed -n 's/.*"boot_id":"\([^"]*\)".*/\1/p'
}

# Writes a drop-in of the configuration; without text, takes it away.
configure() { # NAME [TEXT]
    local file=/etc/hero/hero.toml.d/$1.toml
    if [ $# = 1 ]; then
        inside rm -f "$file"
    else
        printf '%s\n' "$2" | inside tee "$file" > /dev/null
    fi
}

pids() {
    for unit in $UNITS; do
        property "$unit" MainPID
    done
}

# A job that takes its time.
submit_slow() { # ID SECONDS
    alice hero submit --reply-format json --id "$1" -t python -e "import time; time.sleep($2); print('slept')"
}

ended_once() { # ID
    is finished job_field "$1" status
    is slept job_field "$1" output
    is 1 redis llen "hero:q:reply:$1"
}

# The package with the same files under a higher version, with a changed unit: /root/WORD.deb.
make_newer_package() { # WORD
    local tree=$run_dir/newer
    dpkg-deb --raw-extract "$deb" "$tree"
    sed -i "s/^Version: .*/&+$1/" "$tree/DEBIAN/control"
    sed -i "s/^Description=.*/& ($1)/" "$tree/usr/lib/systemd/system/hero@.service"
    dpkg-deb -Zgzip -z1 --root-owner-group --build "$tree" "$run_dir/root/root/$1.deb"
    rm -rf "$tree"
}
