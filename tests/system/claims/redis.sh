# Redis goes away, and comes back.

away_for() { # SECONDS
    local seconds
    seconds=$(property hero@osis-default-1 StatusText | sed -n 's/.*redis away for \([0-9]*\) s.*/\1/p')
    [ "${seconds:-0}" -ge "$1" ]
}

outlasts_redis() {
    local before
    before=$(pids)
    submit_slow across 8
    eventually 10 job_is across started
    inside systemctl stop redis-server
    eventually 60 away_for 20
    is "$before" pids
    for unit in $UNITS; do is active property "$unit" ActiveState; done
    inside systemctl start redis-server
    eventually 30 job_is across finished
    is slept job_field across output
    is 42 alice hero exec -t osis -e '40 + 2'
    is "$before" pids
}

starts_without_redis() {
    local unit=hero@osis-default-2
    inside systemctl stop redis-server
    inside systemctl start --no-block $unit
    throughout 6 is activating property $unit ActiveState
    is 0 property $unit NRestarts
    inside systemctl start redis-server
    eventually 30 unit_is $unit active
    is 0 property $unit NRestarts
    inside systemctl stop $unit
}

# A unit that cannot reach Redis any more leaves its jobs to its lease.
stops_without_redis() {
    local unit=hero@osis-default-2
    inside systemctl start $unit
    inside systemctl stop redis-server
    inside systemctl stop $unit
    is success property $unit Result
    is 0 property $unit ExecMainStatus
    inside systemctl start redis-server
}

claim "Redis away for 20 s: no unit restarts, and jobs go on" outlasts_redis
claim "a unit that starts while Redis is away waits for it" starts_without_redis
claim "a unit stops in order while Redis is away" stops_without_redis
