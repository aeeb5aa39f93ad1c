#!/bin/bash
# A tour of Hero, to be run as
#
#     hero dev -- examples/demo.sh
#
# which starts a private Redis, the supervisor and one actor per script type, and takes them down
# at the end. Every step shows the command before it runs it; this script ends with an error as
# soon as something is not as expected.
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

# must_fail TEXT COMMAND…: the command ends with exit code 1 and says TEXT.
must_fail() {
    local text=$1 said code=0
    shift
    show "$@"
    said=$("$@" 2>&1) || code=$?
    echo "$said"
    [ "$code" = 1 ] || unexpected "exit code $code instead of 1"
    case $said in *"$text"*) ;; *) unexpected "it does not say: $text" ;; esac
}

# must_print TEXT COMMAND…: the command succeeds and prints TEXT.
must_print() {
    local text=$1 printed
    shift
    show "$@"
    printed=$("$@") || unexpected "exit code $?"
    echo "$printed"
    case $printed in *"$text"*) ;; *) unexpected "it does not print: $text" ;; esac
}

# has TYPE: whether there is an actor for it; says so if not.
live=$(hero actor list --json)
has() {
    case $live in
    *"\"actor\":\"$1:default:1\""*) ;;
    *)
        printf '\n(type %s is not available here: skipped)\n' "$1"
        return 1
        ;;
    esac
}

# until_status ID STATUS: waits until the job is in that state, ten seconds at the most.
until_status() {
    for _ in $(seq 200); do
        case $(hero job show --json "$1") in *"\"status\":\"$2\""*) return ;; esac
        sleep 0.05
    done
    unexpected "job $1 is not $2"
}

step "What lives here"
run hero actor list

step "A job is a script; its log shows while it runs, its output when it is done"
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
if has v; then
    step "Type v"
    must_print 'hello from V' hero exec hello.v
fi

step "One that fails says where: line and column"
must_fail 'line 3, position 17' hero exec broken.rhai

step "One that takes too long is stopped"
must_fail timeout hero exec --timeout 500ms -t osis -e 'loop {}'

step "One that is stopped while it runs"
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
must_fail stopped_by_request hero job wait "$id"

step "For the actors of one group, and for one instance alone"
must_print default hero exec -t osis --group default -e '"for the group default"'
must_print instance hero exec -t osis --group default --instance 1 -e '"for this instance alone"'

step "One after the other, and one that is urgent"
show hero submit -t osis -e '"first"'
first=$(hero submit -t osis -e '"first"')
echo "$first"
must_print second hero exec -t osis --after "$first" -e '"second"'
must_print now hero exec -t osis --priority 0 -e '"now"'

step "Several at once, and one that waits for all of them"
after=()
for n in 1 2 3 4 5; do
    show hero submit -t osis -e "$n * $n"
    after+=(--after "$(hero submit -t osis -e "$n * $n")")
done
must_print 'all five are done' hero exec -t osis "${after[@]}" -e '"all five are done"'

step "A whole graph from one file: what a job leaves, those after it read"
show hero submit --graph graph/report.toml
graph=$(hero submit --graph graph/report.toml)
echo "$graph"
if has python; then
    must_print '"sum":16' hero job wait "$(echo "$graph" | awk '$1 == "sum" { print $2 }')"
fi

step "What ran where, and how long it took"
run hero job list --limit 60
run hero queue list
