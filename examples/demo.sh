#!/bin/bash
# A tour of Hero:
#
#     hero dev -- examples/demo.sh
#
# `hero dev` starts a private Redis, a supervisor and one actor per script type, and ends them after
# the tour. Every step prints its command first. The tour fails at the first unexpected result; a
# script type that this machine cannot run is left out, with the reason in the last table.
set -eu
cd "$(dirname "$0")"

step() { printf '\n## %s\n' "$*"; }
show() {
    local word line='$'
    for word; do
        case $word in
        '' | *[!A-Za-z0-9_./:=-]*) line+=" ${word@Q}" ;;
        *) line+=" $word" ;;
        esac
    done
    echo "$line"
}
run() { show "$@"; "$@"; }
unexpected() { echo "demo: unexpected: $*" >&2; exit 1; }

# The time that a command may take, in seconds.
LONGEST=30
bounded() {
    local code=0
    timeout "$LONGEST" "$@" || code=$?
    [ "$code" != 124 ] || echo "demo: no result within $LONGEST s" >&2
    return "$code"
}

# must_fail TEXT COMMAND…: the command ends with exit code 1 and prints TEXT.
must_fail() {
    local text=$1 said code=0
    shift
    show "$@"
    said=$(bounded "$@" 2>&1) || code=$?
    echo "$said"
    [ "$code" = 1 ] || unexpected "exit code $code instead of 1"
    case $said in *"$text"*) ;; *) unexpected "it does not print: $text" ;; esac
}

# must_print TEXT COMMAND…: the command succeeds and prints TEXT.
must_print() {
    local text=$1 printed
    shift
    show "$@"
    printed=$(bounded "$@") || unexpected "exit code $?"
    echo "$printed"
    case $printed in *"$text"*) ;; *) unexpected "it does not print: $text" ;; esac
}

# has TYPE: succeeds if an actor serves it; else prints why not.
live=$(hero actor list --json)
checked=$(hero check 2> /dev/null || true)
missing=()
has() {
    case $live in *"\"actor\":\"$1:default:1\""*) return ;; esac
    local reason
    reason=$(sed -n "s/^$1: not available: //p" <<< "$checked")
    missing+=("$(printf '%-8s not run: %s' "$1" "${reason:-it is not configured}")")
    printf '\n## Type %s is left out: %s\n' "$1" "${reason:-it is not configured}"
    return 1
}

# until_status ID STATUS: waits up to 10 s until the job is in that state.
until_status() {
    for _ in $(seq 200); do
        case $(hero job show --json "$1") in *"\"status\":\"$2\""*) return ;; esac
        sleep 0.05
    done
    unexpected "job $1 is not $2 after 10 s"
}

step "The actors"
run hero actor list

step "A job is a script; its log is shown while it runs, its output when it is done"
must_print 42 hero exec -t osis -e '40 + 2'
must_print '"sum":29' hero exec --caller demo sum.rhai

if has sal; then
    step "Type sal is Rhai with the system"
    must_print 'written by a job' hero exec -t sal --env FOLDER="$(dirname "$HERO_CONFIG")/demo" system.rhai
fi
if has python; then
    step "Type python"
    must_print '3 the' hero exec words.py
fi
if has bash; then
    step "Type bash"
    must_print % hero exec disk.sh
fi
if has node; then
    step "Type node"
    must_print '"words":11' hero exec count.js
fi
if has v; then
    step "Type v"
    must_print 'hello from V' hero exec hello.v
fi

step "A script that fails: the error has its line and column"
must_fail 'line 3, position 17' hero exec broken.rhai

step "A script that takes too long is stopped"
must_fail timeout hero exec --timeout 500ms -t osis -e 'loop {}'

step "A running job is stopped on request"
if has python; then
    show hero submit -t python -e 'import time; time.sleep(60)'
    id=$(hero submit -t python -e 'import time; time.sleep(60)')
else
    show hero submit -t osis -e 'loop {}'
    id=$(hero submit -t osis -e 'loop {}')
fi
echo "$id"
until_status "$id" started
run hero job stop "$id"
must_fail "was stopped by" hero job wait "$id"

step "Jobs for the actors of one group, and for one actor"
must_print default hero exec -t osis --group default -e '"for the group default"'
must_print instance hero exec -t osis --group default --instance 1 -e '"for this instance alone"'

step "A job with a prerequisite, and an urgent job"
show hero submit -t osis -e '"first"'
first=$(hero submit -t osis -e '"first"')
echo "$first"
must_print second hero exec -t osis --after "$first" -e '"second"'
must_print now hero exec -t osis --priority 0 -e '"now"'

step "Several jobs at once, and a job that waits for all of them"
after=()
for n in 1 2 3 4 5; do
    show hero submit -t osis -e "$n * $n"
    after+=(--after "$(hero submit -t osis -e "$n * $n")")
done
must_print 'all five are done' hero exec -t osis "${after[@]}" -e '"all five are done"'

case ${missing[*]-} in
*python*) ;;
*)
    step "A graph of jobs from one file: each reads the output of those before it"
    show hero submit --ids --graph graph/report.toml
    graph=$(hero submit --ids --graph graph/report.toml)
    echo "$graph"
    must_print '"sum":16' hero job wait "$(echo "$graph" | awk '$1 == "sum" { print $2 }')"
    ;;
esac

step "The jobs: where they ran, and how long they took"
run hero job list --limit 60
run hero queue list

step "The script types"
for type in osis sal python bash node v; do
    case ${missing[*]-} in *"$type "*) ;; *) printf '%-8s ran\n' "$type" ;; esac
done
[ ${#missing[@]} = 0 ] || printf '%s\n' "${missing[@]}"

step "The page of all this"
echo "${HERO_PAGE:-hero dev prints its address}"
echo "make demo KEEP=DIR keeps the jobs in DIR, and the page open after the tour, until Ctrl-C"
