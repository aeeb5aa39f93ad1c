#!/bin/sh
# Measures what a drained job costs Redis with one shard, and with several on servers of their own:
#     cargo build --release --workspace && xtask/bench-shards.sh [JOBS]
# SERVERS ("4 64") are the numbers of servers, each with one shard.
# The time is the processor time of all servers (INFO), so other work on the machine counts little.
# BIN is the folder of the programs, target/release unless given.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-target/release}
jobs=${1:-40000}
folder=$(mktemp -d "${TMPDIR:-/tmp}/hero-bench-shards.XXXXXX")
servers=''

# shellcheck disable=SC2317  # the trap calls it
ends() {
    for server in $servers; do kill "$server" 2> /dev/null || true; done
    rm -rf "$folder"
}
trap ends EXIT
trap 'exit 130' INT TERM

begins() {
    redis-server --port 0 --unixsocket "$folder/$1.sock" --dir "$folder" --save '' \
        --appendonly yes --appendfilename "$1.aof" --appenddirname "$1" > /dev/null &
    servers="$servers $!"
    until [ "$(ask "$1" PING 2> /dev/null)" = PONG ]; do sleep 0.1; done
}

ask() {
    name=$1
    shift
    redis-cli -s "$folder/$name.sock" "$@"
}

# The processor time of all servers so far, in microseconds.
used() {
    for name in "$@"; do ask "$name" INFO cpu; done |
        tr -d '\r' | awk -F: '/^used_cpu_(sys|user):/ { sum += $2 } END { printf "%d", sum * 1e6 }'
}

# The finished jobs of all shards: the first server has the home shard, and each further one the next.
finished() {
    number=0
    for name in "$@"; do
        [ "$number" -gt 0 ] && keys="{hero-$number}" || keys=hero
        [ $# -gt 1 ] || keys='hero {hero-1} {hero-2} {hero-3}'
        for key in $keys; do ask "$name" HGET "$key:meta:queue:stats:type:osis" finished; done
        number=$((number + 1))
    done | awk '{ sum += $1 } END { print sum + 0 }'
}

# LABEL SETTINGS SERVER...
measure() {
    label=$1 settings=$2
    shift 2
    for name in "$@"; do ask "$name" FLUSHALL > /dev/null; done
    cat > "$folder/hero.toml" << END
log.level = "warn"
log.jobs = "failed"
job.log_dir = "$folder"
actor.tasks = 4
api.listen = []
[redis]
url = "redis+unix://$folder/s1.sock"
$settings
END
    export HERO_CONFIG="$folder/hero.toml"
    "$bin/xtask" bench shards --jobs "$jobs"
    before=$(used "$@")
    "$bin/hero" run osis-default-1 2> "$folder/actor.log" &
    actor=$!
    until [ "$(finished "$@")" -ge "$jobs" ]; do sleep 0.2; done
    after=$(used "$@")
    busy=$(awk '{ printf "%d", ($14 + $15) * 10000 }' "/proc/$actor/stat")
    kill "$actor"
    wait "$actor" || true
    echo "$label $before $after $busy $jobs" |
        awk '{ printf "%-28s %8.1f us of redis for a job, %8.1f us of the actor\n", $1, ($3 - $2) / $5, $4 / $5 }'
}

most=1
for number in ${SERVERS:-4 64}; do [ "$number" -le "$most" ] || most=$number; done
for number in $(seq "$most"); do begins "s$number"; done
measure one-shard '' s1
measure four-shards-one-server 'shards = 4' s1
for number in ${SERVERS:-4 64}; do
    urls=$(seq 2 "$number" | sed "s|.*|\"redis+unix://$folder/s&.sock\"|" | paste -sd ,)
    # shellcheck disable=SC2046  # one word for each server
    measure "$number-shards-$number-servers" "shards = $number
shard_urls = [$urls]" $(seq -f 's%g' "$number")
done
