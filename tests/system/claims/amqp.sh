# Brokers of RabbitMQ as units. The machine has no RabbitMQ: its package is only suggested. The second
# claim takes this host's, which runs in the network of the machine.

RABBITMQ=/usr/lib/rabbitmq/bin/rabbitmq-server
BROKERS="hero@broker-admin hero@broker-appServer"

names_rabbitmq() {
    configure rabbitmq '[amqp]
url = "amqp://hero@127.0.0.1:5672"
mode = "matrix"'
    # Its indexes of log records.
    inside systemctl reload hero@supervisor
}

forgets_rabbitmq() {
    # shellcheck disable=SC2086
    inside systemctl stop $BROKERS
    configure rabbitmq
    inside rm -rf /etc/credstore/amqp-password
    inside systemctl reload hero@supervisor
}

works_without_rabbitmq() {
    has "$(dpkg-deb --field "$deb" Suggests)" rabbitmq-server
    exits 1 inside dpkg -s rabbitmq-server
    names_rabbitmq
    inside systemctl start --no-block hero@broker-admin
    eventually 30 says hero@broker-admin "trying again until it answers"
    unit_is hero@broker-admin activating
    exits 69 alice hero amqp publish rec.read --type ping
    has "$output" "RabbitMQ at amqp://hero@127.0.0.1:5672"
    is 42 alice hero exec -t osis -e '6 * 7'
    forgets_rabbitmq
    unit_is hero@broker-admin inactive
}

# Starts RabbitMQ; a broker waits until it answers. `hero` may enter its vhost with the password `secret`.
rabbitmq_starts() {
    local folder=$run_dir/rabbitmq pid
    mkdir -p "$folder"
    echo '[].' > "$folder/plugins"
    cat > "$folder/rabbitmq.conf" << END
listeners.tcp.1 = 127.0.0.1:5672
load_definitions = $folder/definitions.json
log.file.level = warning
END
    cat > "$folder/definitions.json" << 'END'
{"vhosts": [{"name": "/"}],
 "users": [{"name": "hero", "password_hash": "AQIDBDB9kM21iEUzN1lZ+6VReCsdNqS0sERdAQTcY6Xs3PMz",
            "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}],
 "permissions": [{"user": "hero", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]}
END
    pid=$(leader)
    # A node that is killed writes its dump into its folder.
    (
        cd "$folder"
        exec nsenter -t "$pid" -n env HOME="$folder" RABBITMQ_NODENAME=claims@localhost \
            ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_MNESIA_BASE="$folder/mnesia" \
            RABBITMQ_LOG_BASE="$folder/log" RABBITMQ_CONFIG_FILE="$folder/rabbitmq.conf" \
            RABBITMQ_ENABLED_PLUGINS_FILE="$folder/plugins" RABBITMQ_PID_FILE="$folder/pid" \
            RABBITMQ_CONF_ENV_FILE=/dev/null $RABBITMQ > "$folder/server.log" 2>&1 < /dev/null 9>&-
    ) &
}

rabbitmq_ends() {
    local folder=$run_dir/rabbitmq pid
    pid=$(cat "$folder/pid")
    kill "$pid"
    eventually 60 is_dead "$pid"
    nsenter -t "$(leader)" -n epmd -kill > /dev/null 2>&1 || true
    rm -f "$folder/pid"
}

is_dead() {
    ! kill -0 "$1" 2> /dev/null
}

# As a client that has the password.
with_password() {
    inside env CREDENTIALS_DIRECTORY=/etc/credstore "$@"
}

brokers_serve_as_units() {
    local unit
    rabbitmq_starts
    inside sh -c 'umask 077; mkdir -p /etc/credstore; printf secret > /etc/credstore/amqp-password'
    names_rabbitmq
    # shellcheck disable=SC2086
    inside systemctl start --no-block $BROKERS
    for unit in $BROKERS; do eventually 120 unit_is "$unit" active; done
    has "$(with_password hero amqp publish rec.read --type ping --wait)" rec.read
    with_password hero amqp publish rec.write --type write --template person \
        --data '{"id": "p1", "name": "Ann"}' --wait
    has "$(with_password hero amqp publish rec.read --type fetch --template person \
        --data '{"id": "p1"}' --wait)" Ann
    eventually 30 milestones_are_stored
    for unit in $BROKERS; do
        is "hero 750" inside stat -c '%U %a' "/var/lib/hero/spool/${unit#hero@}"
    done
    exits 0 with_password hero amqp status --node admin
    forgets_rabbitmq
}

milestones_are_stored() {
    has "$(inside hero amqp logs --limit 100)" "every dispatcher consumes"
}

claim "the package suggests RabbitMQ and works without it; a broker waits for it" works_without_rabbitmq
if [ -x $RABBITMQ ]; then
    claim "brokers serve as units, with their password and their spools in the folders of the unit" \
        brokers_serve_as_units
    # Also after a claim that failed.
    [ ! -e "$run_dir/rabbitmq/pid" ] || rabbitmq_ends || true
else
    echo "skip brokers as units: this host has no rabbitmq-server"
fi
