# Units of a user without root: own configuration, own Redis, own sockets.

USER_UNITS="hero-redis hero@supervisor hero@osis-default-1 hero@python-default-1"

carol() {
    local uid
    uid=$(inside id -u carol)
    inside runuser -u carol -- env HOME=/home/carol "XDG_RUNTIME_DIR=/run/user/$uid" "$@"
}

# From a unit: a logind that looks for the group of its caller refuses one that has none in the machine.
linger() {
    inside systemd-run --quiet --wait --pipe loginctl "$1-linger" carol
}

user_units_verify() {
    inside useradd --create-home carol
    linger enable
    eventually 30 carol systemctl --user list-units
    is "" carol systemd-analyze --user verify --man=no hero@osis-default-1.service hero-redis.service
}

user_units_need_their_file() {
    exits 1 carol systemctl --user start hero@osis-default-1
    has "$(inside journalctl --no-pager -n 20 _UID="$(inside id -u carol)")" \
        "cannot read the configuration /home/carol/.config/hero/hero.toml"
    carol mkdir -p /home/carol/.config/hero
    carol touch /home/carol/.config/hero/hero.toml
}

user_units_run_jobs() {
    local uid
    uid=$(inside id -u carol)
    # shellcheck disable=SC2086
    carol systemctl --user enable --now $USER_UNITS
    for unit in $USER_UNITS; do
        is active carol systemctl --user is-active "$unit"
        is enabled carol systemctl --user is-enabled "$unit"
    done
    is 42 carol hero exec -t osis -e '40 + 2'
    is hello carol hero exec -t python -e 'print("hello")'
    eventually 10 inside test -S "/run/user/$uid/hero/api.sock"
    is 600 inside stat -c %a "/run/user/$uid/hero/api.sock"
    # Not the Redis of the machine.
    has "$(carol hero check --redis 2>&1)" "valid"
    lacks "$(redis get hero:meta:actor:inst:osis:default:1)" \
        "\"pid\":$(carol systemctl --user show -P MainPID hero@osis-default-1),"
    # A wrong configuration fails the reload, as it does for units of the system.
    exits 1 carol sh -c 'echo "[nonsense]" > ~/.config/hero/hero.toml; systemctl --user reload hero@supervisor'
    carol sh -c ': > ~/.config/hero/hero.toml; systemctl --user reload hero@supervisor'
}

user_jobs_are_sandboxed() {
    exits 1 carol hero exec -t python -e 'open("/home/carol/.config/hero/hero.toml")'
    has "$output" "PermissionError"
    exits 1 carol hero exec -t python -e 'import socket; socket.create_connection(("127.0.0.1", 6379))'
    has "$output" "PermissionError"
}

user_units_stop() {
    # shellcheck disable=SC2086
    carol systemctl --user disable --now $USER_UNITS
    linger disable
    eventually 30 inside userdel --remove carol
}

claim "the units of a user pass systemd-analyze verify" user_units_verify
claim "without its configuration a unit of a user fails and says which file it lacks" user_units_need_their_file
claim "a user without root runs units with a Redis of its own" user_units_run_jobs
claim "jobs of a user's units are sandboxed" user_jobs_are_sandboxed
claim "units of a user stop, and leave nothing" user_units_stop
