# The example of one machine with a Redis of its own, pasted as it ships.

EXAMPLE=/usr/share/doc/hero/examples/redis/hero-redis.sh

admin() {
    inside sh -c 'redis-cli --no-auth-warning -s /run/redis/redis-server.sock --user admin \
        --pass "$(cat /etc/hero/admin.password)" "$@"' admin "$@"
}

is_set_up() {
    local id unit
    inside cp -p /etc/redis/redis.conf /etc/redis/redis.conf.before
    id=$(alice hero submit -t osis --delay 1h -e '1')
    # As a person pastes it: line by line into a shell.
    has "$(inside sh < "$run_dir/root$EXAMPLE")" "42"
    # Once more, as it may be.
    has "$(inside sh "$EXAMPLE")" "42"
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    inside usermod -aG redis alice
    # What Redis had before is still there.
    has "$(alice hero job show "$id")" scheduled
    alice hero job delete "$id"
    is 42 alice hero exec -t python -e 'print(6 * 7)'
    exits 1 alice hero exec -t osis --retries 1 -e 'throw "no"'
    is 600 inside stat -c %a /var/backups/hero.jsonl
}

is_closed() {
    exits 1 inside redis-cli ping
    has "$(inside redis-cli -s /run/redis/redis-server.sock ping 2>&1)" NOAUTH
    exits 1 inside runuser -u nobody -- redis-cli -s /run/redis/redis-server.sock ping
    exits 1 alice cat /etc/hero/actor.password
    exits 1 alice cat /etc/hero/admin.password
}

# But for two settings, which only an administrator may read, and for the messages about pushes, which daemons
# alone need: hero check --redis says so.
is_refused_nothing_here() {
    is "" sh -c "printf '%s\\n' \"\$1\" |
        sed -n '/^object\$/{n;/^config|get\$/d;/^client|tracking\$/d;p}'" sh "$(admin ACL LOG)"
}

goes_on_after_a_restart() {
    local unit id
    id=$(alice hero submit -t osis --delay 1h -e '1')
    inside systemctl restart redis-server
    # Redis has loaded all of its append-only file.
    has "$(alice hero job show "$id")" scheduled
    alice hero job delete "$id"
    is 42 alice hero exec -t osis -e '40 + 2'
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    is 42 alice hero exec -t osis -e '40 + 2'
    inside systemctl reload hero@osis-default-1
}

# All passwords change while jobs are submitted and run.
rotates_passwords() {
    local unit pids before id
    pids=$(for unit in $UNITS; do property "$unit" MainPID; done)
    before=$(inside cat /etc/hero/actor.password)
    id=$(alice hero submit -t python -e 'import time; time.sleep(8); print("slow")')
    inside sh -c 'for n in $(seq 60); do runuser -u alice -- hero submit -t osis --id "rotated-$n" -e 1 || exit; done' &
    local submits=$!
    inside sh "$EXAMPLE" rotate
    wait $submits
    # Every connection logs in once more, with the new password.
    for unit in actor supervisor client; do admin CLIENT KILL USER "hero-$unit"; done
    is slow alice hero job wait "$id"
    inside sh -c 'for n in $(seq 60); do runuser -u alice -- hero job wait "rotated-$n" > /dev/null || exit; done'
    is "$pids" sh -c "$(printf 'cat << END\n%s\nEND\n' "$(for unit in $UNITS; do property "$unit" MainPID; done)")"
    [ "$before" != "$(inside cat /etc/hero/actor.password)" ]
    # A unit sees its own password alone.
    is "" inside nsenter -t "$(property hero@osis-default-1 MainPID)" -m cat /etc/hero/supervisor.password
    inside nsenter -t "$(property hero@osis-default-1 MainPID)" -m grep -qE '^[0-9a-f]{64}$' /etc/hero/actor.password
}

# One folder of drop-ins for all: a client, and each unit with the login of its own.
reads_one_folder_of_drop_ins() {
    configure night 'job.output_size_max = "2MiB"'
    has "$(inside hero check 2>&1)" "runs with other settings"
    for unit in $UNITS; do inside systemctl reload "$unit"; done
    eventually 15 lacks_other_settings
    has "$(inside journalctl --no-pager -o cat -u hero@osis-default-1)" 'job.output_size_max: '
    has "$(alice hero audit --what config)" 'job.output_size_max: '
    configure night
    for unit in $UNITS; do inside systemctl reload "$unit"; done
    eventually 15 lacks_other_settings
}

lacks_other_settings() {
    lacks "$(inside hero check 2>&1)" "runs with other settings"
}

# A unit that has failed is no hindrance, and reads the new password at its next start.
rotates_beside_a_failed_unit() {
    inside sh -c 'mkdir -p /run/systemd/system/hero@bash-default-1.service.d &&
        printf "[Service]\nRestart=no\n" > /run/systemd/system/hero@bash-default-1.service.d/once.conf &&
        systemctl daemon-reload'
    inside systemctl start hero@bash-default-1
    inside systemctl kill --kill-whom=main --signal=KILL hero@bash-default-1
    eventually 10 unit_is hero@bash-default-1 failed
    for _ in 1 2 3; do inside sh "$EXAMPLE" rotate; done
    # One password each: none of the old ones is left.
    is 4 sh -c 'printf "%s\n" "$1" | tr " " "\n" | grep -c "^#"' sh "$(admin ACL LIST | grep 'user hero-')"
    inside systemctl reset-failed hero@bash-default-1
    inside systemctl start hero@bash-default-1
    eventually 30 unit_is hero@bash-default-1 active
    inside systemctl stop hero@bash-default-1
    inside sh -c 'rm -r /run/systemd/system/hero@bash-default-1.service.d && systemctl daemon-reload'
}

rotates_a_token() {
    exits 77 inside hero token new night --scope read
    has "$output" 'HERO_CONFIG=/etc/hero/supervisor.toml'
    inside env HERO_CONFIG=/etc/hero/supervisor.toml hero token new night --scope read
    inside env HERO_CONFIG=/etc/hero/supervisor.toml hero token rotate night
    inside env HERO_CONFIG=/etc/hero/supervisor.toml hero token rotate night --drop-old
    inside env HERO_CONFIG=/etc/hero/supervisor.toml hero token revoke night
}

back_to_the_port() {
    local unit
    inside cp -p /etc/redis/redis.conf.before /etc/redis/redis.conf
    inside rm -r /etc/systemd/system/hero@.service.d /etc/systemd/system/hero@supervisor.service.d
    inside sh -c 'cd /etc/hero && rm -rf *.password actor.toml* supervisor.toml* backup.toml* \
        hero.toml.d/redis.toml'
    inside systemctl daemon-reload
    inside systemctl restart redis-server
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    is 42 alice hero exec -t osis -e '40 + 2'
}

claim "the example of one machine with its Redis works as it is pasted, and again" is_set_up
claim "its Redis has no port, and takes nobody without a login" is_closed
claim "Redis refuses nothing of what Hero does there" is_refused_nothing_here
claim "it goes on after a restart of Redis and of the units" goes_on_after_a_restart
claim "its passwords change under load: nothing is lost, no unit is restarted" rotates_passwords
claim "drop-ins in hero.toml.d are in force for each unit after a reload, which names what it changed" reads_one_folder_of_drop_ins
claim "a failed unit does not stop a rotation, and no old password is left" rotates_beside_a_failed_unit
claim "a token is rotated with the login of the supervisor, which the refusal names" rotates_a_token
claim "without it the units work as before" back_to_the_port
