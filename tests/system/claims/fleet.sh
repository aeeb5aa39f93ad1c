# Five machines on one Redis, and the first and the last run of docs/fleet.md: four of them are web machines, of which
# one loses its power in the midst of a run. Their nginx is a unit that only notes its starts.

# The number of each web machine is that of its actor.
WEB="2 3 4 5"
PAGE=docs/fleet.md

# The commands or files of the page below a heading: the Nth block of a language.
page_block() { # HEADING LANGUAGE [N]
    awk -v heading="## $1" -v fence="\`\`\`$2" -v wanted="${3:-1}" '
        /^## / { here = ($0 == heading) }
        here && $0 == fence { block++; code = 1; next }
        /^```$/ { code = 0 }
        here && code && block == wanted' $PAGE
}

run_of_page() { # N
    alice sh -c "$(page_block "Five runs" sh "$1")"
}

# All that the web machines have in common. The file of the type and the rule are those of the page.
prepare_machines() {
    local root=$run_dir/root
    page_block "Five runs" toml | inside tee /etc/hero/hero.toml.d/bash.toml > /dev/null
    inside mkdir -p /etc/polkit-1/rules.d
    page_block "Five runs" js | inside tee /etc/polkit-1/rules.d/50-hero-nginx.rules > /dev/null
    cat > "$root/usr/local/bin/nginx" << 'END'
#!/bin/sh
redis-cli RPUSH restarts "+ $(hostname)" > /dev/null
sleep "$(cat /etc/nginx-takes)"
redis-cli RPUSH restarts "- $(hostname)" > /dev/null
test ! -e /etc/nginx-is-broken
END
    chmod 755 "$root/usr/local/bin/nginx"
    printf '[Service]\nType=oneshot\nExecStart=/usr/local/bin/nginx\n' > "$root/etc/systemd/system/nginx.service"
    echo 1 > "$root/etc/nginx-takes"
    inside systemctl daemon-reload
    configure labels '[actor.labels]
role = "db"'
    inside systemctl start hero@bash-default-1
}

create_web_machine() { # NUMBER
    create_further "$1" "web$(($1 - 1))"
    printf '[actor.labels]\nrole = "web"\n' > "$run_dir/further-$1/etc/hero/hero.toml.d/labels.toml"
}

are_five() {
    local number
    for number in $WEB; do on_machine "$number" inside systemctl enable --quiet --now "hero@bash-default-$number"; done
    is 5 listed machine
    is 4 listed actor --where 'role = web'
}

listed() { # machine|actor [OPTION...]: how many `hero … list` lists
    local what=$1
    shift
    alice hero --json "$what" list "$@" | python3 -c "import json, sys; print(len(json.load(sys.stdin)['${what}s']))"
}

# The starts of nginx since the last call, and the most at once.
starts() {
    redis lrange restarts 0 -1 |
        awk '/^\+/ { starts++; if (++now > most) most = now } /^-/ { now-- } END { print starts + 0, most + 0 }'
    redis del restarts > /dev/null
}

newest_batch() {
    alice hero --json graph list | python3 -c 'import json, sys; print(json.load(sys.stdin)["graphs"][0]["id"])'
}

restarts_two_at_a_time() {
    is "== web1, web2, web3, web4 (4)" run_of_page 1
    is "4 2" starts
    has "$(alice hero graph show "$(newest_batch)")" "4 of 4 done"
}

for_web() { # COMMAND...
    local number
    for number in $WEB; do on_machine "$number" inside "$@"; done
}

stops_after_a_failure() {
    local batch counts
    for_web touch /etc/nginx-is-broken
    exits 1 run_of_page 1
    has "$output" "failed: exit code 1"
    counts=$(starts)
    batch=$(newest_batch)
    # One more may run while the first fails, and no other starts.
    case $counts in "1 1" | "2 2") ;; *) echo "starts, and the most at once: $counts"; return 1 ;; esac
    has "$(alice hero graph show "$batch")" "${counts%% *} failed, $((4 - ${counts%% *})) cancelled"
    has "$(alice hero graph show "$batch")" "stopped after 1 failure"
    for_web rm /etc/nginx-is-broken
    alice hero graph retry "$batch"
    alice hero graph wait "$batch"
    is "4 2" starts
    has "$(alice hero graph show "$batch")" "4 of 4 done"
}

progress_is() { # ID TEXT
    has "$(alice hero graph show "$1")" "$2"
}

is_noted() { # NUMBER
    has "$(inside redis-cli ZRANGE hero:meta:actor:seen 0 -1)" ":$1"
}

# Web2 restarts nginx when its power goes; the others finish. What is submitted meanwhile waits for it as well.
goes_on_without_one() {
    local restart uname
    echo 90 > "$run_dir/further-3/etc/nginx-takes"
    restart=$(page_block "Five runs" sh 1 | sed 's/^hero exec/hero submit --expires 2d/')
    restart=$(alice sh -c "$restart")
    eventually 10 is activating on_machine 3 inside systemctl show -P ActiveState nginx
    # Supervisors note every half minute which machines there are.
    eventually 60 is_noted 3
    cut_power 3
    eventually 30 progress_is "$restart" "3 of 4 done"
    # Until its lease ends, it counts as live.
    eventually 30 is 3 listed actor --where 'role = web'
    uname=$(run_of_page 5)
    eventually 10 progress_is "$uname" "4 of 5 done, 1 waiting"
    progress_is "$restart" "3 of 4 done, 1 waiting"
    echo "$restart $uname" > "$run_dir/batches"
    echo 1 > "$run_dir/further-3/etc/nginx-takes"
}

comes_back() {
    local restart uname
    read -r restart uname < "$run_dir/batches"
    alice timeout 60 hero graph wait "$restart"
    progress_is "$restart" "4 of 4 done"
    alice timeout 60 hero graph wait "$uname"
    progress_is "$uname" "5 of 5 done"
}

claim "a user of the units may restart nginx by the files of docs/fleet.md" prepare_machines
for number in $WEB; do create_web_machine "$number"; done
for number in $WEB; do start_further "$number"; done
for number in $WEB; do on_machine "$number" await_boot; done
claim "four web machines and one other, each with its labels, work on one Redis" are_five
claim "docs/fleet.md: nginx restarts on all web machines, two at a time" restarts_two_at_a_time
claim "docs/fleet.md: after one failure no other machine starts; the retry goes on with the rest" stops_after_a_failure
claim "a machine loses its power in the midst of a run: the others go on, and its jobs wait" goes_on_without_one
start_further 3
on_machine 3 await_boot
claim "it is back, and its jobs run" comes_back
for number in $WEB; do cut_power "$number"; done
inside systemctl stop hero@bash-default-1
inside sh -c 'rm -f /etc/polkit-1/rules.d/50-hero-nginx.rules /etc/systemd/system/nginx.service /usr/local/bin/nginx \
    /etc/nginx-takes /etc/hero/hero.toml.d/bash.toml /etc/hero/hero.toml.d/labels.toml'
