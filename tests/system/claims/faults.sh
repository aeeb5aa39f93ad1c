# What each fault costs: jobs are on their way while it strikes. Each claim tells its figures.

FAULT_JOBS=120

# Half of them quick, half of them a process that takes its time.
submit_jobs_for() { # FAULT
    local number
    for number in $(seq $FAULT_JOBS); do
        if [ $((number % 2)) = 0 ]; then
            echo "{\"id\":\"$1-$number\",\"script_type\":\"osis\",\"script\":\"$number\"}"
        else
            echo "{\"id\":\"$1-$number\",\"script_type\":\"python\",\"script\":\"import time; time.sleep(0.2); print($number)\"}"
        fi
    done | inside tee "/tmp/$1.jsonl" > /dev/null
    alice hero submit --batch "/tmp/$1.jsonl" > /dev/null
}

# Prints how many jobs of a fault finished, started more than once, and were charged with a crash.
account_of() { # FAULT
    redis EVAL '
        local finished, again, charged = 0, 0, 0
        for number = 1, ARGV[2] do
            local f = redis.call("HMGET", "hero:job:" .. ARGV[1] .. "-" .. number, "status", "attempt", "crashes")
            if f[1] == "finished" then finished = finished + 1 end
            if tonumber(f[2] or 0) > 1 then again = again + 1 end
            charged = charged + tonumber(f[3] or 0)
        end
        return finished .. " " .. again .. " " .. charged' 0 "$1" "$FAULT_JOBS"
}

all_finished() { # FAULT
    has "$(account_of "$1")" "$FAULT_JOBS "
}

# The ends that the counters of both types know.
ends() {
    local sum=0 type what
    for type in osis python; do
        for what in finished failed; do
            sum=$((sum + $(redis hget "hero:meta:queue:stats:type:$type" $what || echo 0)))
        done
    done
    echo "$sum"
}

# costs FAULT CRASHES FUNCTION: the jobs all finish, none ends twice, and no more than so many crashes are
# charged.
costs() {
    local before began account charged after
    # shellcheck disable=SC2086
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    before=$(ends)
    submit_jobs_for "$1"
    "$3"
    began=$SECONDS
    eventually 90 all_finished "$1"
    account=$(account_of "$1")
    charged=${account##* }
    # The counters are written with the ends.
    after=$(ends)
    echo "= $FAULT_JOBS jobs, lost 0, ended twice $((after - before - FAULT_JOBS)), charged $charged, all ended $((SECONDS - began)) s after it"
    [ $((after - before)) = "$FAULT_JOBS" ] || { echo "ends: $before, then $after"; return 1; }
    [ "$charged" -le "$2" ] || { echo "charged: $account"; return 1; }
    inside rm "/tmp/$1.jsonl"
}

kill_actor() {
    inside systemctl kill --signal=KILL hero@python-default-1
}

restart_units() {
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
}

kill_supervisor() {
    inside systemctl kill --signal=KILL hero@supervisor
}

redis_away() {
    inside systemctl stop redis-server
    sleep 5
    inside systemctl start redis-server
}

# No answer and no error, as from a machine behind a broken line.
redis_silent() {
    inside systemctl kill --signal=STOP redis-server
    sleep 5
    inside systemctl kill --signal=CONT redis-server
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
}

# The file system that systemd itself needs to start units.
run_full() {
    inside sh -c 'dd if=/dev/zero of=/run/filler bs=1M 2> /dev/null || true'
    sleep 5
    inside rm /run/filler
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

claim "an actor is killed" costs actor-killed 8 kill_actor
claim "all units are restarted" costs units-restarted 0 restart_units
claim "the supervisor is killed" costs supervisor-killed 0 kill_supervisor
claim "one of two supervisors is killed" costs two-supervisors 0 one_of_two_supervisors
claim "Redis is away for 5 s" costs redis-away 0 redis_away
claim "Redis answers nothing for 5 s" costs redis-silent 0 redis_silent
claim "Redis is full for 5 s" costs redis-full 0 redis_full
claim "Redis is read-only for 5 s" costs redis-read-only 0 redis_read_only
claim "/run is full for 5 s" costs run-full 0 run_full
