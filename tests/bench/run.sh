#!/bin/sh
# Measures Hero, alone or beside other job queues:
#
#   tests/bench/run.sh [OPTION…]               hero bench, with its options
#   PEERS=DIR tests/bench/run.sh NAME…         Hero and these, ROUNDS (3) rounds, as a table
#
# DIR has a folder for each NAME, with `peer` and `peer.json` as in hero/ beside this file, and the harness
# lib/bench.py, which takes such a folder and prints a line of JSON for each measure. All take turns, so a
# slow minute of the machine falls on all of them. Redis keeps an append-only file (everysec).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export HERO="${HERO:-$here/../../target/release/hero}"
[ -n "${PEERS:-}" ] || exec "$HERO" bench "$@"

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for _ in $(seq "${ROUNDS:-3}"); do
    for folder in "$here/hero" "$@"; do
        [ -d "$folder" ] || folder=$PEERS/$folder
        python3 "$PEERS/lib/bench.py" "$folder" --repeat 1 --redis everysec \
            --measures "${MEASURES:-queue,bulk,latency}" >> "$lines"
    done
done
python3 "$here/table.py" "$lines"
