# What the Redis of the machine keeps, and units that require it.

keep() { # yes|no
    inside redis-cli CONFIG SET appendonly "$1"
    inside redis-cli CONFIG SET appendfsync everysec
    inside redis-cli CONFIG REWRITE
}

written() {
    case $(redis INFO persistence) in
    *aof_rewrite_in_progress:0*aof_rewrite_scheduled:0*) ;;
    *) return 1 ;;
    esac
}

# As README sets it. The example file has the same settings.
keeps_accepted_jobs() {
    local id
    keep yes
    eventually 30 written
    has "$(alice hero check --redis)" "redis: keeps every write, except the last second (appendonly yes, appendfsync everysec)"
    id=$(alice hero submit -t osis --delay 1h -e '1')
    # What Redis writes to the file, a kill does not take.
    inside systemctl kill --signal=KILL redis-server
    eventually 30 unit_is redis-server active
    eventually 30 job_is "$id" scheduled
    has "$(alice hero status)" "keeps   every write"
    alice hero job delete "$id"
}

example_is_legal() {
    inside redis-server /usr/share/doc/hero/examples/redis/hero-redis.conf --port 0 --daemonize yes \
        --dir /tmp --pidfile /tmp/example.pid --unixsocket /tmp/example.sock
    eventually 10 inside redis-cli -s /tmp/example.sock PING
    is "appendonly
yes" inside redis-cli -s /tmp/example.sock CONFIG GET appendonly
    inside redis-cli -s /tmp/example.sock SHUTDOWN NOSAVE
}

supervisor_says() { # TEXT
    has "$(property hero@supervisor StatusText)" "$1"
}

supervisor_is_content() {
    local status
    status=$(property hero@supervisor StatusText)
    has "$status" ", redis ok" && lacks "$status" "may forget"
}

is_watched() {
    eventually 30 supervisor_is_content
    keep no
    eventually 30 supervisor_says ", redis ok, but it may forget jobs: it keeps snapshots"
    says hero@supervisor "now keeps snapshots"
    keep yes
    eventually 30 written
    eventually 30 supervisor_is_content
}

is_required() {
    local unit=hero@osis-default-2
    configure durable '[redis]
require_durable = true'
    inside systemctl start $unit
    inside systemctl stop $unit
    keep no
    exits 1 inside systemctl start $unit
    eventually 10 unit_is $unit failed
    is 78 property $unit ExecMainStatus
    has "$(inside journalctl --no-pager --output=cat -u $unit -n 20)" "redis-cli CONFIG SET appendonly yes"
    exits 78 inside hero check --redis
    keep yes
    configure durable
    inside systemctl reset-failed $unit
}

is_for_monitoring() {
    # shellcheck disable=SC2086
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    eventually 30 inside hero status --check
    has "$(inside hero status --check)" "OK - "
    inside systemctl stop hero@supervisor
    exits 2 inside hero status --check
    has "$output" "CRITICAL - 0 live supervisors"
    inside systemctl start hero@supervisor
    eventually 10 inside hero status --check
}

claim "with README's two settings a killed Redis keeps an accepted job" keeps_accepted_jobs
claim "the example of a durable Redis is legal" example_is_legal
claim "the supervisor says while it runs that Redis forgets, and that it does not any more" is_watched
claim "with require_durable a unit refuses a Redis that forgets, once, with 78" is_required
claim "hero status --check is OK, and critical without a supervisor" is_for_monitoring
