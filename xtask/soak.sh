#!/bin/sh
# Shows whether the processes of the daemon grow. `make soak` runs it inside `hero --config xtask/soak.toml dev`.
# ROUNDS (20) times JOBS (5000) jobs of osis, and a hundredth as many of bash and of Python, run; then the daemon rests
# for REST (20) seconds: then it looks and beats as often as in a quarter of an hour with its defaults. After each
# round a line per process tells its resident and its own (private and written) memory in KiB, its open descriptors and
# its threads; the line of Redis its memory in KiB and its keys; the last line the files in the daemon's folder. It
# fails if the last third of the rounds holds over a tenth more than the middle third.
set -eu

rounds=${ROUNDS:-20}
jobs=${JOBS:-5000}
rest=${REST:-20}
home=$(dirname "$HERO_CONFIG")
socket=$(sed -n 's|^url = "redis+unix://\(.*\)"|\1|p' "$HERO_CONFIG")
rows=$(mktemp "${TMPDIR:-/tmp}/hero-soak.XXXXXX")
trap 'rm -f "$rows"' EXIT
trap 'exit 130' INT TERM

# The processes that `hero dev` started: PID NAME.
processes() {
    tr ' ' '\n' < "/proc/$PPID/task/$PPID/children" | while read -r pid; do
        words=$(tr '\0' ' ' < "/proc/$pid/cmdline")
        case $words in *' run '*) echo "$pid ${words##* run }" ;; esac
    done
}

# PID: resident and own memory, descriptors, threads.
held() {
    awk '/^Rss:/ { all = $2 } /^Private_Dirty:/ { own = $2 } END { printf "%d %d ", all, own }' \
        "/proc/$1/smaps_rollup"
    find "/proc/$1/fd" -mindepth 1 2> /dev/null | wc -l
    find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l
}

row() {
    printf '%-5s %-18s %9s %9s %6s %7s\n' "$@" | tee -a "$rows"
}

# TYPE NUMBER SCRIPT: lets them run, and waits for one more, which begins after them.
run() {
    hero bench bulk "$2" --type "$1" --script "$3" > /dev/null
    hero exec --type "$1" -e "$3" > /dev/null
}

processes > "$rows.of"
trap 'rm -f "$rows" "$rows.of"' EXIT
row ROUND PROCESS RESIDENT OWN FILES THREADS
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    run osis "$jobs" 1
    run bash $((jobs / 100)) 'echo 1'
    run python $((jobs / 100)) 'print(1)'
    sleep "$rest"
    while read -r pid name; do
        # shellcheck disable=SC2046  # four numbers
        row "$round" "$name" $(held "$pid")
    done < "$rows.of"
    used=$(redis-cli -s "$socket" INFO memory | tr -d '\r' | sed -n 's/^used_memory://p')
    row "$round" redis $((used / 1024)) $((used / 1024)) - -
    echo "      $(redis-cli -s "$socket" DBSIZE) keys, $(find "$home" | wc -l) files in the daemon's folder"
done

awk -v rounds="$rounds" '
    NR > 1 && $1 > rounds / 3 { of = $1 > 2 * rounds / 3 ? "end" : "middle"
        names[$2]; n[$2, of]++; own[$2, of] += $4; files[$2, of] += $5; threads[$2, of] += $6 }
    function mean(sum, name, of) { return n[name, of] ? sum / n[name, of] : 0 }
    function grows(what, name, middle, end, slack) {
        if (end <= middle * 1.1 + slack) return 0
        printf "%s: %s grew from %.0f to %.0f\n", name, what, middle, end
        return 1
    }
    END { for (name in names) {
            bad += grows("own memory", name, mean(own[name, "middle"], name, "middle"), mean(own[name, "end"], name, "end"), 256)
            bad += grows("open files", name, mean(files[name, "middle"], name, "middle"), mean(files[name, "end"], name, "end"), 1)
            bad += grows("threads", name, mean(threads[name, "middle"], name, "middle"), mean(threads[name, "end"], name, "end"), 1)
        }
        if (!bad) print "flat: nothing grew by over a tenth"
        exit bad > 0 }' "$rows"
