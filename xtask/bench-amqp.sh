#!/bin/sh
# Measures brokers beside bare consumers, on a private RabbitMQ that ends with it:
#     cargo build --release --workspace && xtask/bench-amqp.sh [--messages 20000]
# BIN is the folder of the programs, target/release unless given.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-target/release}
folder=$(mktemp -d "${TMPDIR:-/tmp}/hero-bench-amqp.XXXXXX")
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port) epmd=$(free_port) dist=$(free_port)

in_its_world() {
    env HOME="$folder" RABBITMQ_NODENAME="bench$port@localhost" RABBITMQ_NODE_PORT="$port" \
        RABBITMQ_DIST_PORT="$dist" ERL_EPMD_PORT="$epmd" ERL_EPMD_ADDRESS=127.0.0.1 \
        RABBITMQ_MNESIA_BASE="$folder/mnesia" RABBITMQ_LOG_BASE="$folder/log" \
        RABBITMQ_CONFIG_FILE="$folder/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$folder/plugins" \
        RABBITMQ_PID_FILE="$folder/pid" RABBITMQ_CONF_ENV_FILE=/dev/null \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 2:2 +sbwt none" "$@"
}

# shellcheck disable=SC2317  # the trap calls it
ends() {
    if [ -s "$folder/pid" ]; then
        server=$(cat "$folder/pid")
        kill "$server" 2> /dev/null || true
        while kill -0 "$server" 2> /dev/null; do sleep 0.1; done
    fi
    in_its_world epmd -port "$epmd" -kill > /dev/null 2>&1 || true
    rm -rf "$folder"
}
trap ends EXIT
trap 'exit 130' INT TERM

echo '[].' > "$folder/plugins"
printf 'listeners.tcp.1 = 127.0.0.1:%s\nlog.file.level = warning\n' "$port" > "$folder/rabbitmq.conf"
in_its_world /usr/lib/rabbitmq/bin/rabbitmq-server > "$folder/server.log" 2>&1 < /dev/null &
in_its_world timeout 60 /usr/lib/rabbitmq/bin/rabbitmqctl wait "$folder/pid" > /dev/null

echo guest > "$folder/password"
cat > "$folder/hero.toml" << END
[amqp]
url = "amqp://guest@127.0.0.1:$port"
password_file = "$folder/password"
queue_tag = "bench_"

[[amqp.route]]
key = "adm"
operation = "count"
type = "osis"
script = "1"
END
"$bin/hero" --config "$folder/hero.toml" dev -- "$bin/xtask" bench amqp "$@"
