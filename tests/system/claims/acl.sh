# Redis with a user for each party, as the example that ships has it.

PARTIES="actor supervisor client backup"

# A command that a new script uses must be granted to a user.
lists_every_command_of_the_scripts() {
    local listed command
    listed=$(grep -o ' +[a-z|]*' packaging/redis/hero-acl.conf | sort -u)
    for command in $(grep -ohE "redis\.p?call\('[A-Z]+'" src/store/scripts/*.lua |
        sed "s/.*'\(.*\)'/\1/" | sort -u | tr '[:upper:]' '[:lower:]'); do
        has "$listed
" " +$command
" > /dev/null || { echo "nobody may $command"; return 1; }
    done
}

as_party() { # PARTY COMMAND...: redis-cli as that user
    local party=$1
    shift
    inside redis-cli --no-auth-warning --user "hero-$party" --pass "secret-of-$party" "$@"
}

as_backup() {
    inside env HERO_CONFIG=/etc/hero/backup.toml hero "$@"
}

as_client() {
    inside env HERO_CONFIG=/etc/hero/client.toml hero "$@"
}

logs_in_parties() {
    local example=$run_dir/root/usr/share/doc/hero/examples/redis/hero-acl.conf party hash
    cp "$example" "$run_dir/root/etc/redis/hero-acl.conf"
    # As it ships, with no password put in, Redis does not take it.
    ! inside redis-server /etc/redis/hero-acl.conf --port 0 || return 1
    for party in $PARTIES; do
        hash=$(printf %s "secret-of-$party" | sha256sum | cut -d' ' -f1)
        sed -i "s/^\(user hero-$party on #\)[^ ]*/\1$hash/" "$run_dir/root/etc/redis/hero-acl.conf"
        printf '[redis]\nusername = "hero-%s"\n' "$party" | inside tee "/etc/hero/$party.toml"
        printf 'secret-of-%s\n' "$party" | inside tee "/etc/hero/$party.password"
        inside chmod 600 "/etc/hero/$party.password"
    done
    for party in client backup; do
        echo "password_file = \"/etc/hero/$party.password\"" | inside tee -a "/etc/hero/$party.toml"
    done
    inside chgrp redis /etc/redis/hero-acl.conf
    inside cp -p /etc/redis/redis.conf /etc/redis/redis.conf.before
    inside sed -i '/^user default /d' /etc/redis/redis.conf
    printf 'include /etc/redis/hero-acl.conf\nuser default off ~* &* +@all\nuser hero-admin on >admin ~* +@all\n' |
        inside tee -a /etc/redis/redis.conf
    inside systemctl restart redis-server
    give_login hero@supervisor supervisor
    give_login hero@osis-default-1 actor
    give_login hero@python-default-1 actor
    inside systemctl daemon-reload
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
}

give_login() { # UNIT PARTY
    printf '[Service]\nEnvironment=HERO_CONFIG=/etc/hero/%s.toml\nLoadCredential=redis-password:/etc/hero/%s.password\n' \
        "$2" "$2" | inside sh -c "mkdir -p /etc/systemd/system/$1.service.d &&
            cat > /etc/systemd/system/$1.service.d/login.conf"
}

# What every part does in a day; Redis keeps a list of all that it refused.
works() {
    is 42 as_client exec -t osis -e '40 + 2'
    is out as_client exec -t python -e 'import sys; print("log", file=sys.stderr); print("out")' \
        2> /dev/null
    exits 1 as_client exec -t osis --retries 1 -e 'throw "no"'
    local first second
    first=$(as_client submit -t osis --delay 1s -e '1')
    second=$(as_client submit -t osis --after "$first" --unique-key k -e '2')
    is 2 as_client job wait "$second"
    as_client job list
    as_client job show "$second"
    as_client job logs "$second"
    as_client queue list
    as_client queue pause type:osis
    first=$(as_client submit -t osis -e '1')
    as_client queue resume type:osis
    is 1 as_client job wait "$first"
    as_client submit -t sal -e '1'
    as_client queue purge --yes type:sal
    as_client dead list
    as_client check > /dev/null
    as_client actor list
    as_client status > /dev/null
    first=$(as_client submit -t python -e 'import time; time.sleep(60)')
    as_client job stop "$first"
    exits 1 as_client job wait "$first"
    as_client job retry "$first"
    as_client job stop "$first"
    exits 1 as_client job wait "$first"
    as_client job delete "$first"
    as_client actor drain osis-default-1
    eventually 15 actor_says draining
    as_client actor resume osis-default-1
    eventually 15 actor_says ready
    # A job that the actor gives back, and one whose actor dies.
    first=$(as_client submit -t python -e 'import time; time.sleep(4)')
    inside systemctl kill --kill-whom=main --signal=KILL hero@python-default-1
    as_client job wait "$first"
    inside systemctl reset-failed hero@python-default-1
    inside systemctl restart hero@python-default-1
    as_backup backup /root/hero.jsonl
    exits 65 as_backup restore /root/hero.jsonl
    is 600 inside stat -c %a /root/hero.jsonl
    # A foreign client's pop that was lost.
    as_client job list --json > /dev/null
}

actor_says() {
    has "$(as_client actor list)" "$1"
}

is_refused_nothing() {
    # The one connection that may look: the default user, let in again for this.
    local refused
    refused=$(inside_as_admin ACL LOG)
    [ -z "$refused" ] || { echo "$refused"; return 1; }
}

inside_as_admin() {
    inside redis-cli --no-auth-warning --user hero-admin --pass admin "$@"
}

refused() { # PARTY COMMAND...
    local said
    said=$(as_party "$@" 2>&1) || true
    case $said in *NOPERM*) ;; *) echo "allowed: $*: $said"; return 1 ;; esac
}

is_refused_the_rest() {
    local party
    # The stars are Redis's.
    set -f
    for party in $PARTIES; do
        for command in FLUSHALL FLUSHDB "KEYS *" "SCAN 0" "CONFIG GET *" "ACL LIST" "CLIENT LIST" \
            "CLIENT KILL TYPE normal" SHUTDOWN SAVE MONITOR "EVAL return 0" \
            "SCRIPT FLUSH" "MODULE LIST" "PUBLISH a b" "SUBSCRIBE a" "GET other:key" "SET other:key 1" \
            "HSET other:job:1 a b" "RENAME hero:job:1 other:key"; do
            # With it the supervisor searches for lost jobs.
            [ "$party $command" != "supervisor SCAN 0" ] || continue
            # shellcheck disable=SC2086
            refused "$party" $command
        done
    done
    # An actor reads nobody's replies, and makes itself no other part of the system.
    refused actor LPOP hero:q:reply:1
    refused actor SMEMBERS hero:meta:queue:index
    refused actor XRANGE hero:meta:job:events - +
    refused actor LPOP hero:q:dead:type:osis
    refused actor HGETALL hero:meta:queue:rate:type:osis
    # A supervisor is no actor, and submits nothing of its own.
    refused supervisor SET hero:meta:actor:inst:osis:default:1 x
    refused supervisor BLPOP hero:q:work:type:osis 1
    refused client SET hero:meta:supervisor:inst:x x
    refused supervisor XADD hero:meta:job:log:1 '*' a b
    refused supervisor RPOP hero:q:reply:1
    refused backup BLPOP hero:q:work:type:osis 1
    # A client neither poses as an actor nor takes away what one owns.
    refused client SET hero:meta:actor:inst:osis:default:1 x
    refused client ZREM hero:meta:boot:index x
    refused client ZADD hero:meta:boot:running:x 1 y
    refused client HSET hero:meta:boot:hosts x y
    refused client LPOP hero:q:work:type:osis
    refused client XADD hero:meta:job:log:1 '*' a b
    refused client BLPOP hero:q:ctl:type:osis 1
}

back_to_one_user() {
    inside cp -p /etc/redis/redis.conf.before /etc/redis/redis.conf
    for unit in $UNITS; do inside rm -r "/etc/systemd/system/$unit.service.d"; done
    inside systemctl daemon-reload
    inside systemctl restart redis-server
    # shellcheck disable=SC2086
    inside systemctl restart $UNITS
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    is 42 alice hero exec -t osis -e '40 + 2'
}

claim "the example of access control lists every command of the server-side scripts" \
    lists_every_command_of_the_scripts
claim "with the example of access control, each unit logs in by its own credential" logs_in_parties
claim "client, actor, supervisor and backup do all they do" works
claim "Redis has refused none of that" is_refused_nothing
claim "each of them is refused what it does not need" is_refused_the_rest
claim "without it the units work as before" back_to_one_user
