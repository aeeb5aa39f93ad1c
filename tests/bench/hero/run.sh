#!/bin/sh
# Measures this peer alone: one JSON line per measure on standard output. BENCH names the harness,
# lib/bench.py of the collection of peers; further options are its own, such as
#   BENCH=…/lib/bench.py ./run.sh --redis everysec --measures queue,latency
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "${BENCH:-$here/../lib/bench.py}" "$here" "$@"
