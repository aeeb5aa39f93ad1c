#!/bin/bash
# Takes the pictures of the page that README and docs/web.md show, into a folder:
#     cargo build && xtask/screenshots.sh [FOLDER]
# Each picture shows the page of `hero dev` with demo jobs, in the light and in the dark theme. The jobs run while
# the pictures are taken. The hour before them is written into the counters of the private Redis, since a
# curve of one minute shows nothing. BIN is the folder of the program, target/debug unless given.
set -euo pipefail
cd "$(dirname "$0")/.."

# A picture that is larger makes the README slow.
BYTES_MAX=200000

if [ -z "${HERO_SCREENSHOTS:-}" ]; then
    bin=$(realpath "${BIN:-target/debug}")
    for program in chromium redis-cli; do
        command -v "$program" > /dev/null ||
            { echo "screenshots: $program is missing: make deps-test installs it" >&2; exit 1; }
    done
    work=$(mktemp -d "${TMPDIR:-/tmp}/hero-screenshots.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/cron.d"
    cat > "$work/cron.d/demo.toml" << 'END'
[cron.sync-rates]
schedule = "*/15 * * * *"
type = "bash"
script = "true"

[cron.nightly-report]
schedule = "0 3 * * *"
type = "python"
script = "pass"

[cron.weekly-clean]
schedule = "30 4 * * 0"
type = "bash"
script = "true"
END
    cat > "$work/hero.toml" << END
[supervisor]
cron_dir = "$work/cron.d"

[api]
listen = ["127.0.0.1:0"]

[limit.warehouse]
per = "key"
running = 1
END
    HERO_SCREENSHOTS=$work "$bin/hero" --config "$work/hero.toml" dev -- "$0" "$@"
    exit
fi

folder=${1:-docs/images}
redis() { redis-cli -s "${HERO_CONFIG%/*}/redis.sock" "$@"; }

# An hour of samples, one a minute, and counters of the types that agree with the last one.
write_history() {
    awk -v now="$(date +%s)" '
        BEGIN {
            names = "submitted finished failed"
            buckets = "0.001 0.005 0.025 0.1 0.5 1 5 30 60 300 1800 7200 inf"
            split(buckets, of, " ")
            for (word = 1; word <= 2; word++) {
                for (place = 1; place <= 13; place++) names = names (word == 1 ? " wait_le_" : " run_le_") of[place]
                names = names (word == 1 ? " wait_us" : " run_us")
            }
            count = split(names, name, " ")
            types = split("bash node osis python", type, " ")
            split("420 60 900 180", per_minute, " ")
            for (minute = 0; minute <= 60; minute++) {
                line = sprintf("{\"at_us\":%d,\"queued\":%d,\"held\":1,\"running\":%d,\"types\":{",
                    (now - (60 - minute) * 60) * 1000000, 4 + (minute * 7) % 5, 6 + 3 * sin(minute / 6))
                for (t = 1; t <= types; t++) {
                    jobs = int(per_minute[t] * (1 + 0.25 * sin(minute / 9 + t) + 0.06 * sin(minute * 2.3)))
                    failed = int(jobs * (t == 4 && minute > 49 ? 0.12 : 0.008))
                    add(t, "submitted", jobs); add(t, "failed", failed); add(t, "finished", jobs - failed)
                    add(t, "wait_le_0.005", int(jobs * 0.8)); add(t, "wait_le_0.025", jobs - int(jobs * 0.8))
                    add(t, "run_le_0.1", jobs); add(t, "wait_us", jobs * 4000); add(t, "run_us", jobs * 30000)
                    line = line (t > 1 ? "," : "") "\"" type[t] "\":["
                    for (n = 1; n <= count; n++) line = line (n > 1 ? "," : "") (sum[t, name[n]] + 0)
                    line = line "]"
                    print "RPUSH hero:meta:queue:hour:type:" type[t] " \"" (now - (60 - minute) * 60) * 1000000 " " \
                        sum[t, "finished"] " " sum[t, "failed"] " 0\""
                }
                print "RPUSH hero:meta:queue:samples " line "}}"
            }
            for (t = 1; t <= types; t++)
                for (n = 1; n <= count; n++)
                    if (sum[t, name[n]]) print "HINCRBY hero:meta:queue:stats:type:" type[t], name[n], sum[t, name[n]]
        }
        function add(t, counter, by) { sum[t, counter] += by }' | sed "s/ {/ '{/; s/}}\$/}}'/" > "$HERO_SCREENSHOTS/history"
    redis DEL hero:meta:queue:samples hero:meta:queue:{hour,rate}:type:{bash,node,osis,python} > /dev/null
    redis < "$HERO_SCREENSHOTS/history" > /dev/null
}

# Jobs that run, wait and fail while the pictures are taken.
submit_demo() {
    cat > "$HERO_SCREENSHOTS/import.py" << 'END'
import time
import hero

for page in range(1, 32):
    changed = page * 7 % 11
    print(f"page {page}: {90 + changed} orders, {changed} changed", flush=True)
    hero.progress(page / 50, f"page {page} of 50")
    time.sleep(0.2)
time.sleep(600)
END
    cat > "$HERO_SCREENSHOTS/train.py" << 'END'
import time
import hero

hero.progress(0.34, "epoch 4 of 12")
time.sleep(600)
END
    hero submit -t bash --name mirror --timeout 10m -e 'sleep 600'
    hero submit -t python --id orders --name "import orders" --tag shop --tag nightly --caller warehouse \
        --limit-key shop --param file=orders-2026-11.csv --timeout 10m --retries 3 "$HERO_SCREENSHOTS/import.py"
    hero submit -t python --name "train model" --caller research --timeout 10m "$HERO_SCREENSHOTS/train.py"
    hero submit -t python --name "import returns" --caller warehouse --limit-key shop -e 'pass'
    hero submit -t python --name "monthly report" --delay 3h -e 'pass'
    fails "fetch rates" bash 'echo "curl: (28) timed out" >&2; exit 28'
    fails "resize images" bash 'echo "magick: cannot open image.png" >&2; exit 1'
    fails sync python 'raise ValueError("HTTP Error 503: Service Unavailable")'
} > /dev/null

fails() { # NAME TYPE SCRIPT
    hero submit -t "$2" --name "$1" --caller shop -e "$3"
}

# Small jobs until the script ends; some fail.
keep_busy() {
    local number
    for number in $(seq 12); do
        printf '{"script_type":"osis","script":"%d * 2","name":"price"}\n' "$number"
        printf '{"script_type":"bash","script":"sleep 0.05","name":"thumbnail"}\n'
    done > "$HERO_SCREENSHOTS/small.jsonl"
    while sleep 1; do hero submit --batch "$HERO_SCREENSHOTS/small.jsonl" > /dev/null 2>&1 || return 0; done
}

# Takes a picture of an address in a theme, and checks its size.
picture() { # NAME ADDRESS HEIGHT light|dark
    local file=$folder/$1-$4.png scheme=1 bytes
    [ "$4" = light ] || scheme=0
    HOME=$HERO_SCREENSHOTS timeout 30 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --no-first-run --user-data-dir="$HERO_SCREENSHOTS/profile-$4" --window-size="1280,$3" \
        --blink-settings="preferredColorScheme=$scheme" --screenshot="$file" \
        "$HERO_PAGE&next=$2" > "$HERO_SCREENSHOTS/chromium" 2>&1 ||
        { cat "$HERO_SCREENSHOTS/chromium" >&2; echo "screenshots: chromium took no picture of $2" >&2; exit 1; }
    bytes=$(stat --format %s "$file")
    [ "$bytes" -le "$BYTES_MAX" ] ||
        { echo "screenshots: $file has $bytes bytes, more than $BYTES_MAX: make it lower" >&2; exit 1; }
    echo "$file: $bytes bytes"
}

write_history
submit_demo
keep_busy &
busy=$!
trap 'kill "$busy" 2> /dev/null || true' EXIT
until hero job show orders --json | grep -q '"progress_text":"page 31 of 50"' &&
    [ "$(redis HGET hero:meta:queue:rate:type:bash per_s)" != 0.00 ]; do sleep 0.2; done
for theme in light dark; do
    picture overview / 1000 "$theme"
    picture job /jobs/orders 1000 "$theme"
done
