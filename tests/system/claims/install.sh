# Installation, and the first units.

stops_for_a_person_of_that_name() {
    inside useradd --create-home hero
    exits 100 inside apt-get install -y -q /root/hero.deb
    has "$output" "is a person, and the units of Hero would run as that user"
    inside userdel --remove hero
    inside dpkg --purge hero
}

installs_and_starts_nothing() {
    inside apt-get install -y -q /root/hero.deb
    for folder in hero.toml.d cron.d heroscript scripts; do
        is "755 root root" inside stat -c '%a %U %G' "/etc/hero/$folder"
    done
    is "" inside systemctl list-units --all --no-legend --plain 'hero*'
    is "" sh -c "find '$run_dir/root/etc/systemd/system' -name 'hero*'"
    is "640 root hero" inside stat -c '%a %U %G' /etc/hero/hero.toml
    is "750 hero hero" inside stat -c '%a %U %G' /var/log/hero/jobs
    is "750 root hero" inside stat -c '%a %U %G' /etc/hero/secrets
    has "$(inside getent passwd hero)" ":/var/lib/hero:/usr/sbin/nologin"
}

verifies() {
    is "" inside systemd-analyze verify --man=no hero@osis-default-1.service hero.target
}

is_hardened() {
    local said
    said=$(inside systemd-analyze security --no-pager hero@osis-default-1.service | tail -n 1)
    echo "= ${said#*exposure level for }"
    inside systemd-analyze security --no-pager --threshold=14 hero@osis-default-1.service > /dev/null
}

needs_only_the_socket() {
    # A unit that does not run: the drop-in would take its network at once.
    local unit=hero@osis-socket-1.service said
    inside mkdir -p "/run/systemd/system/$unit.d"
    inside cp /usr/share/doc/hero/examples/systemd/redis-socket-only.conf "/run/systemd/system/$unit.d"
    inside systemctl daemon-reload
    is "" inside systemd-analyze verify --man=no $unit
    said=$(inside systemd-analyze security --no-pager $unit | tail -n 1)
    inside systemd-analyze security --no-pager --threshold=12 $unit > /dev/null
    inside rm -r "/run/systemd/system/$unit.d"
    inside systemctl daemon-reload
    echo "= ${said#*exposure level for }"
}

enables_and_starts() {
    # shellcheck disable=SC2086
    inside systemctl enable --now $UNITS
    for unit in $UNITS; do
        is active inside systemctl is-active "$unit"
        is enabled inside systemctl is-enabled "$unit"
        is 0 property "$unit" NRestarts
    done
}

# systemd of Debian 13 tells of each credential that is not there.
starts_without_noise() {
    lacks "$(inside journalctl --no-pager --output=cat -u 'hero@*')" "inherited credential"
    lacks "$(inside journalctl --no-pager --output=cat -u 'hero@*' -p warning)" "heroscript"
}

is_present() {
    has "$(redis get hero:meta:actor:inst:osis:default:1)" \
        "\"pid\":$(property hero@osis-default-1 MainPID),"
    local ttl
    ttl=$(redis ttl hero:meta:actor:inst:osis:default:1)
    [ "$ttl" -ge 1 ] && [ "$ttl" -le 15 ] && echo "= TTL $ttl s"
}

status_has() { # UNIT TEXT
    has "$(inside systemctl status --no-pager "$1")" "$2"
}

shows_status() {
    eventually 10 status_has hero@osis-default-1 'Status: "0 of 4 tasks busy'
    status_has hero@osis-default-1 'redis ok'
    eventually 10 status_has hero@supervisor 'Status: "'
}

runs_jobs_of_users() {
    inside useradd --create-home --groups hero alice
    is 42 alice hero exec -t osis -e '40 + 2'
    is hello alice hero exec -t python -e 'print("hello")'
}

refuses_other_users() {
    inside useradd --create-home mallory
    exits 78 inside runuser -u mallory -- hero exec -t osis -e '40 + 2'
    has "$output" "/etc/hero/hero.toml"
    has "$output" "permission denied"
}

claim "a person named hero stops the installation" stops_for_a_person_of_that_name
claim "apt-get installs it; no unit runs or is enabled; the folders and the user are there" \
    installs_and_starts_nothing
claim "systemd-analyze verify has nothing to say" verifies
claim "systemctl enable --now starts the supervisor and two actors" enables_and_starts
claim "their start tells of no credential and no folder that is missing" starts_without_noise
claim "systemd-analyze security, at most 1.4" is_hardened
claim "with the example for a Redis on a socket alone, at most 1.2" needs_only_the_socket
claim "an actor's presence is in Redis and expires" is_present
claim "systemctl status shows a line for people" shows_status
claim "a user in the group hero runs jobs" runs_jobs_of_users
claim "a user who is not in it is told why not" refuses_other_users
