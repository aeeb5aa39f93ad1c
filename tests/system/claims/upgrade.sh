# A newer package over a running one.

JOBS=20

all_ended() {
    local number
    for number in $(seq $JOBS); do
        job_is "upgrade-$number" finished || return 1
    done
}

some_run() {
    local number
    for number in $(seq $JOBS); do
        ! job_is "upgrade-$number" started || return 0
    done
    return 1
}

loses_nothing() {
    local before number
    make_newer_package newer
    inside sed -i 's/^#tasks = 4$/tasks = 3/' /etc/hero/hero.toml
    inside hero check > /dev/null
    inside systemctl restart hero@python-default-1
    inside systemctl stop hero@osis-default-2
    before=$(pids)
    for number in $(seq $JOBS); do
        submit_slow "upgrade-$number" 4
    done
    eventually 10 some_run
    job_is "upgrade-$JOBS" dispatched
    inside apt-get install -y -q /root/newer.deb
    has "$(inside dpkg-query -W hero)" "+newer"
    # Each of them was started again, by its own wish and in order.
    local unit pid
    for unit in $UNITS; do
        eventually 20 unit_is "$unit" active
        pid=$(property "$unit" MainPID)
        lacks " $(echo "$before" | tr '\n' ' ')" " $pid "
        is 0 property "$unit" NRestarts
        has "$(property "$unit" Description)" "(newer)"
        is no property "$unit" NeedDaemonReload
    done
    is inactive property hero@osis-default-2 ActiveState
    eventually 90 all_ended
    for number in $(seq $JOBS); do
        ended_once "upgrade-$number"
        # Drained, not killed.
        is "" job_field "upgrade-$number" crashes
        is 1 job_field "upgrade-$number" attempt
    done
    inside grep -q '^tasks = 3$' /etc/hero/hero.toml
    is "640 root hero" inside stat -c '%a %U %G' /etc/hero/hero.toml
}

says_that_units_wait_for_redis() {
    inside systemctl stop redis-server
    local printed
    printed=$(inside apt-get install -y -q --reinstall /root/newer.deb)
    has "$printed" "Units of Hero still restart: they wait for jobs, or for Redis"
    inside systemctl start redis-server
    local unit
    for unit in $UNITS; do
        eventually 30 unit_is "$unit" active
    done
}

claim "an upgrade while $JOBS jobs are on their way loses none and keeps the edited hero.toml" \
    loses_nothing
claim "an upgrade without Redis ends, and says that the units still restart" \
    says_that_units_wait_for_redis
