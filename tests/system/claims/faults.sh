# What each fault costs: jobs are on their way while it strikes. Each claim tells its figures, and adds
# them to the table at the end of the run. docs/reliability.md says how long jobs may wait.

FAULT_JOBS=120
# The tasks of an actor, as the package has it: the jobs that run when it dies.
TASKS=4
FAKETIME_FILE=/etc/hero/clock
# The most lines that a unit writes for one fault.
LINES_MAX=5

# Half of them quick, half of them a process that takes its time.
submit_jobs_for() { # FAULT
    local number
    for number in $(seq $FAULT_JOBS); do
        if [ $((number % 2)) = 0 ]; then
            echo "{\"id\":\"$1-$number\",\"script_type\":\"osis\",\"script\":\"$number\"}"
        else
            echo "{\"id\":\"$1-$number\",\"script_type\":\"python\",\"script\":\"import time; time.sleep(0.3); print($number)\"}"
        fi
    done | inside tee "/tmp/$1.jsonl" > /dev/null
    alice hero submit --batch "/tmp/$1.jsonl" > /dev/null
}

# Prints how many jobs of a fault finished, were charged with a crash, and the longest time in ms without
# a start or an end of a job of one type, from `began` on.
account_of() { # FAULT
    redis EVAL '
        local finished, charged, longest = 0, 0, 0
        local function of_day(text)
            local h, m, s = string.match(text or "", "T(%d+):(%d+):(%d+%.?%d*)Z")
            return h and h * 3600 + m * 60 + s
        end
        local began = tonumber(ARGV[3])
        local moments = { osis = {}, python = {} }
        for number = 1, ARGV[2] do
            local f = redis.call("HMGET", "hero:job:" .. ARGV[1] .. "-" .. number,
                "status", "crashes", "script_type", "started_at", "finished_at")
            if f[1] == "finished" then finished = finished + 1 end
            charged = charged + tonumber(f[2] or 0)
            for place = 4, 5 do
                local at = of_day(f[place])
                if at then
                    -- Past midnight.
                    if at < began - 43200 then at = at + 86400 end
                    if at > began then table.insert(moments[f[3]], at) end
                end
            end
        end
        for _, of_type in pairs(moments) do
            table.sort(of_type)
            local before = began
            for _, at in ipairs(of_type) do
                longest = math.max(longest, at - before)
                before = at
            end
        end
        return finished .. " " .. charged .. " " .. string.format("%d", longest * 1000)' \
        0 "$1" "$FAULT_JOBS" "$began"
}

all_finished() { # FAULT
    has "$(account_of "$1")" "$FAULT_JOBS "
}

# The ends that the counters of both types know.
ends() {
    local sum=0 type what number
    for type in osis python; do
        for what in finished failed; do
            number=$(redis hget "hero:meta:queue:stats:type:$type" $what)
            sum=$((sum + ${number:-0}))
        done
    done
    echo "$sum"
}

# From now on jobs may wait no longer than documented: when a fault begins, or, if nobody could run jobs
# while it lasts, when it is over. In seconds of the day, by the clock of Redis.
waits_count_from_here() {
    began=$(redis EVAL 'local t = redis.call("TIME")
        return string.format("%.3f", t[1] % 86400 + t[2] / 1000000)' 0)
}

# The longest wait in seconds that the page documents for a fault.
documented_wait() { # FAULT
    sed -n "s/^| $(echo "$1" | sed 's,/,\\/,g') | \([0-9]*\) s |.*/\1/p" docs/reliability.md
}

# The most lines that one unit writes because of a fault: warnings and errors that are not of one job, from this
# second of the epoch on.
warnings_since() { # SECOND
    local unit lines most=0
    for unit in $UNITS; do
        lines=$(inside journalctl --quiet --unit "$unit" --priority warning --since "@$1" --output json |
            grep -c -v '"JOB_ID"' || true)
        [ "$lines" -le "$most" ] || most=$lines
    done
    echo "$most"
}

# costs FAULT KEY CRASHES FUNCTION: the jobs all finish, none ends twice, no more than so many crashes are
# charged, none waits longer than documented, and no unit writes more than LINES_MAX warnings.
costs() {
    local before after began account charged unexplained waited_ms bound since lines
    bound=$(documented_wait "$1")
    [ -n "$bound" ] || { echo "docs/reliability.md has no longest wait for: $1"; return 1; }
    # shellcheck disable=SC2086
    inside systemctl reset-failed $UNITS
    # shellcheck disable=SC2086
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    before=$(ends)
    since=$(inside date +%s)
    waits_count_from_here
    submit_jobs_for "$2"
    "$4"
    eventually 120 all_finished "$2"
    account=$(account_of "$2")
    waited_ms=${account##* }
    charged=${account#* }
    charged=${charged%% *}
    unexplained=$((charged > $3 ? charged - $3 : 0))
    # The counters are written with the ends.
    after=$(ends)
    lines=$(warnings_since "$since")
    printf '%s\t0\t%s\t%s\t%s\t%s\t%s\n' "$1" "$((after - before - FAULT_JOBS))" "$unexplained" \
        "$((waited_ms / 1000)).$((waited_ms % 1000 / 100))" "$bound" "$lines" >> "$run_dir/faults"
    echo "= lost 0, ended twice $((after - before - FAULT_JOBS)), charged $charged, longest wait $waited_ms ms," \
        "at most $lines warnings of a unit"
    [ $((after - before)) = "$FAULT_JOBS" ] || { echo "ends: $before, then $after"; return 1; }
    [ "$unexplained" = 0 ] || { echo "charged: $charged"; return 1; }
    [ "$waited_ms" -le $((bound * 1000)) ] || { echo "waited $waited_ms ms, documented are $bound s"; return 1; }
    [ "$lines" -le "$LINES_MAX" ] || { echo "$lines warnings of one unit"; return 1; }
    inside rm -f "/tmp/$2.jsonl"
}

# The table of all faults, at the end of a run.
print_faults() {
    echo
    echo "$FAULT_JOBS jobs on their way at each fault; waits in seconds"
    echo
    printf '%-36s %6s %12s %22s %13s %11s %15s\n' fault lost "ended twice" "charged without cause" \
        "longest wait" documented "lines of a unit"
    local fault lost twice charged waited bound lines
    while IFS='	' read -r fault lost twice charged waited bound lines; do
        printf '%-36s %6s %12s %22s %13s %11s %15s\n' "$fault" "$lost" "$twice" "$charged" "$waited" "$bound" "$lines"
    done < "$run_dir/faults"
}

some_started() { # FAULT
    [ "$(redis EVAL 'local n = 0
        for number = 1, ARGV[2] do
            if redis.call("HGET", "hero:job:" .. ARGV[1] .. "-" .. number, "status") == "started" then n = n + 1 end
        end
        return n' 0 "$1" "$FAULT_JOBS")" -gt 0 ]
}

nothing() {
    true
}

kill_actor() {
    eventually 10 some_started actor-killed
    waits_count_from_here
    inside systemctl kill --signal=KILL hero@python-default-1
}

stop_actor() {
    inside systemctl stop hero@python-default-1
    sleep 3
    inside systemctl start hero@python-default-1
    waits_count_from_here
}

restart_units() {
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
}

upgrade_units() {
    inside apt-get install -y -q /root/changed.deb
    # shellcheck disable=SC2086
    for unit in $UNITS; do
        eventually 30 unit_is "$unit" active
        has "$(property "$unit" Description)" "(changed)"
    done
    # An older version is installed in the same way.
    inside apt-get install -y -q --allow-downgrades /root/hero.deb
}

reboot_all() {
    # What Redis has written, it has after the reboot.
    reboot_machine
    # shellcheck disable=SC2086
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    waits_count_from_here
}

kill_supervisor() {
    inside systemctl kill --signal=KILL hero@supervisor
}

redis_away() {
    inside systemctl stop redis-server
    sleep 5
    inside systemctl start redis-server
    waits_count_from_here
}

# No answer and no error.
redis_silent() {
    inside systemctl kill --signal=STOP redis-server
    sleep 5
    inside systemctl kill --signal=CONT redis-server
    waits_count_from_here
}

# No packet reaches the other side, and nobody is told.
redis_cut_off() {
    local network
    network=/proc/$(leader)/ns/net
    nsenter --net="$network" ip link set lo down
    sleep 5
    nsenter --net="$network" ip link set lo up
    waits_count_from_here
}

redis_full() {
    redis CONFIG SET maxmemory 1mb > /dev/null
    sleep 5
    redis CONFIG SET maxmemory 0 > /dev/null
}

redis_read_only() {
    redis REPLICAOF 127.0.0.1 1 > /dev/null
    sleep 5
    redis REPLICAOF NO ONE > /dev/null
    waits_count_from_here
}

# The file system that systemd itself needs to start units.
run_full() {
    inside sh -c 'set -- $(stat -f -c "%b %f %S" /run)
        mount -o remount,size=$((($1 - $2) * $3)) /run
        ! echo full 2> /dev/null > /run/filler
        sleep 5
        mount -o remount,size=$(($1 * $3)) /run'
}

# Another supervisor beside the first, which then dies.
one_of_two_supervisors() {
    configure second '[unit.second]
role = "supervisor"'
    inside systemctl start hero@second
    inside systemctl kill --signal=KILL hero@supervisor
    eventually 30 unit_is hero@supervisor active
    inside systemctl stop hero@second
    configure second
}

# The other machine has two actors of its own and a supervisor. They run half of the jobs.
one_of_two_machines() {
    eventually 20 second_works
    waits_count_from_here
    cut_power 2
}

second_works() {
    [ "$(redis EVAL 'local n = 0
        for number = 1, ARGV[1] do
            local f = redis.call("HMGET", "hero:job:two-machines-" .. number, "status", "actor")
            if f[1] == "started" and string.find(f[2], ":2$") then n = n + 1 end
        end
        return n' 0 "$FAULT_JOBS")" -gt 0 ]
}

works_too() {
    on_machine 2 inside systemctl start hero@supervisor hero@osis-default-2 hero@python-default-2
    has "$(alice hero actor list)" "$NAME-2"
    has "$(alice hero status --json)" "$NAME-2"
}

# Each unit gets a clock of its own, which the file sets while it runs.
have_clocks_to_set() {
    local library unit
    library=$(cd "$run_dir/root" && ls usr/lib/*/faketime/libfaketime.so.1)
    set_clock +0
    for unit in $UNITS; do
        inside mkdir -p "/run/systemd/system/$unit.service.d"
        printf '[Service]\nEnvironment=LD_PRELOAD=/%s FAKETIME_TIMESTAMP_FILE=%s\nEnvironment=FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n' \
            "$library" "$FAKETIME_FILE" |
            inside tee "/run/systemd/system/$unit.service.d/clock.conf" > /dev/null
    done
    inside systemctl daemon-reload
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
    set_clock +1h
    eventually 15 is 1 hours_ahead
    set_clock +0
    eventually 15 is 0 hours_ahead
}

set_clock() { # OFFSET
    printf '%s\n' "$1" | inside sh -c "cat > $FAKETIME_FILE.new && chmod 644 $FAKETIME_FILE.new && mv $FAKETIME_FILE.new $FAKETIME_FILE"
}

# By how many hours the clock of an actor is ahead of Redis's: its presence has its time.
hours_ahead() {
    local at
    at=$(redis get hero:meta:actor:inst:python:default:1 | sed -n 's/.*"last_heartbeat":"\([^"]*\)".*/\1/p')
    echo $((($(date -d "$at" +%s) - $(date +%s) + 1800) / 3600))
}

clocks_jump() {
    local turn
    for turn in 1 2 3; do
        set_clock +1h
        sleep 1
        set_clock +0
        sleep 1
    done
}

have_true_clocks_again() {
    local unit
    for unit in $UNITS; do inside rm -r "/run/systemd/system/$unit.service.d"; done
    inside rm $FAKETIME_FILE
    inside systemctl daemon-reload
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
}

fault() { # FAULT KEY CRASHES FUNCTION
    claim "$1: nothing lost, ended twice or charged without cause" costs "$@"
}

fault "no fault" no-fault 0 nothing
fault "an actor is killed" actor-killed $TASKS kill_actor
fault "an actor is stopped for 3 s" actor-stopped 0 stop_actor
fault "all units are restarted" units-restarted 0 restart_units
make_newer_package changed > /dev/null
fault "an upgrade with a changed unit" upgraded 0 upgrade_units
fault "the machine reboots" rebooted 0 reboot_all
fault "the supervisor is killed" supervisor-killed 0 kill_supervisor
fault "one of two supervisors is killed" two-supervisors 0 one_of_two_supervisors
create_further 2 "$NAME-2"
start_further 2
on_machine 2 await_boot
claim "a second machine works on the same Redis" works_too
fault "one of two machines loses its power" two-machines $((2 * TASKS)) one_of_two_machines
fault "Redis is away for 5 s" redis-away 0 redis_away
fault "Redis answers nothing for 5 s" redis-silent 0 redis_silent
fault "Redis is cut off for 5 s" redis-cut-off 0 redis_cut_off
fault "Redis is full for 5 s" redis-full 0 redis_full
fault "Redis is read-only for 5 s" redis-read-only 0 redis_read_only
fault "/run is full for 5 s" run-full 0 run_full
claim "units start with a clock that can be set" have_clocks_to_set
fault "clocks jump by an hour and back" clocks 0 clocks_jump
claim "units start with the true clock again" have_true_clocks_again
