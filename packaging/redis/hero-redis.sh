# One machine with Hero and a Redis of its own: Redis on a socket that no other machine reaches, with
# a user for each part of Hero, keeping what it has accepted; and three units.
#
# For Debian with the packages hero and redis-server. Paste it as root, or run it:
#
#     sh /usr/share/doc/hero/examples/redis/hero-redis.sh
#
# It may be run again. Other programs that use this Redis must change to the socket and to a user of
# their own. Users who submit jobs are in the groups hero and redis.
#
# Later it gives Hero's users new passwords, while everything runs on, no unit is restarted and no job is lost. If it
# cannot come to its end, it prints how far it came and what to run then:
#
#     sh /usr/share/doc/hero/examples/redis/hero-redis.sh rotate [actor|supervisor|client|backup]...
set -eu
examples=/usr/share/doc/hero/examples/redis
umask 077
socket=/run/redis/redis-server.sock

admin() { # COMMAND...: of Redis, as its administrator
    REDISCLI_AUTH=$(cat /etc/hero/admin.password) redis-cli -e -s $socket --user admin "$@"
}
running() { # The units that run: a failed one reads its password at its next start.
    systemctl list-units --plain --no-legend --state=active,reloading 'hero@*.service' | cut -d ' ' -f 1
}
reaches() { # NAME: whether Redis takes the password of a user
    REDISCLI_AUTH=$(cat "/etc/hero/$1.password") redis-cli -e -s $socket --user "hero-$1" ping > /dev/null ||
        { echo "Redis does not take hero-$1 with the password in /etc/hero/$1.password" >&2; return 1; }
}
serves() { # UNIT: whether a unit runs, and Redis takes its login
    while [ "$(systemctl show -P ActiveState "$1")" = reloading ]; do sleep 0.2; done
    [ "$(systemctl show -P ActiveState "$1")" = active ] &&
        ! systemctl show -P StatusText "$1" | grep -q 'refuses the login' && return
    echo "$1 does not serve; see: journalctl -u $1 -n 20" >&2
    return 1
}
rotate() { # NAME
    stage="nothing of hero-$1 has changed"
    new=$(head -c 32 /dev/urandom | sha256sum | cut -c 1-64)
    hash=$(printf %s "$new" | sha256sum | cut -c 1-64)
    # Redis takes both passwords until every unit has the new one.
    admin ACL SETUSER "hero-$1" "#$hash" > /dev/null
    stage="Redis takes the old and a new password of hero-$1; only the next rotate of $1 ends the old one"
    # In place: the file of the other units is hidden from a unit by a mount on it.
    echo "$new" > "/etc/hero/$1.password"
    sed -i "s/^\(user hero-$1 on #\)[^ ]*/\1$hash/" /etc/redis/hero-acl.conf
    # The units that run read it again.
    case "$1" in
    actor | supervisor)
        for unit in $(running); do
            systemctl reload "$unit"
            serves "$unit"
        done
        ;;
    esac
    reaches "$1"
    admin ACL SETUSER "hero-$1" resetpass "#$hash" > /dev/null
    echo "hero-$1 has a new password"
    changed="$changed $1"
}
ended() { # How far it came, if it did not come to its end.
    [ "$?" = 0 ] || echo "not ended: $stage. New passwords:${changed:- none}. Mend what is wrong, then: sh $0 rotate$todo" >&2
}
if [ "${1:-}" = rotate ]; then
    shift
    [ $# -gt 0 ] || set -- actor supervisor client backup
    changed="" stage="nothing has changed"
    trap ended EXIT
    trap 'exit 130' INT HUP TERM
    while [ $# -gt 0 ]; do
        todo=" $*"
        rotate "$1"
        shift
    done
    for unit in $(running); do serves "$unit"; done
    exit
fi

# 1. The passwords: one for each part, and one for the administrator of Redis.
for name in actor supervisor client backup admin; do
    [ -s "/etc/hero/$name.password" ] ||
        head -c 32 /dev/urandom | sha256sum | cut -c 1-64 > "/etc/hero/$name.password"
done
chgrp hero /etc/hero/client.password
chmod 640 /etc/hero/client.password
# The units read theirs, and read them again when they change. A person in the group hero reads none of the two.
chown hero:root /etc/hero/actor.password /etc/hero/supervisor.password
chmod 400 /etc/hero/actor.password /etc/hero/supervisor.password

units=$(running)

# 2. What Redis has now goes to its append-only file; a restart alone would begin with an empty one.
if redis-cli ping > /dev/null 2>&1 && redis-cli config set appendonly yes > /dev/null; then
    until redis-cli info persistence | grep -q aof_rewrite_in_progress:0; do sleep 1; done
fi

# 3. Redis: its users, its settings, its socket.
cp "$examples/hero-acl.conf" /etc/redis/hero-acl.conf
for name in actor supervisor client backup; do
    hash=$(tr -d '\n' < "/etc/hero/$name.password" | sha256sum | cut -c 1-64)
    sed -i "s/^\(user hero-$name on #\)[^ ]*/\1$hash/" /etc/redis/hero-acl.conf
done
# The default user is off, and has permissions all the same: as this user Redis loads its file.
hash=$(tr -d '\n' < /etc/hero/admin.password | sha256sum | cut -c 1-64)
cat >> /etc/redis/hero-acl.conf << END
user admin on #$hash ~* &* +@all
user default off ~* &* +@all
END
cp "$examples/hero-redis.conf" /etc/redis/hero-redis.conf
cat >> /etc/redis/hero-redis.conf << 'END'
port 0
unixsocket /run/redis/redis-server.sock
unixsocketperm 770
END
chown redis:redis /etc/redis/hero-acl.conf /etc/redis/hero-redis.conf
chmod 640 /etc/redis/hero-acl.conf /etc/redis/hero-redis.conf
# CONFIG REWRITE leaves a line for that user; Redis takes only one.
sed -i '/^user default /d' /etc/redis/redis.conf
for file in hero-redis.conf hero-acl.conf; do
    grep -q "^include /etc/redis/$file" /etc/redis/redis.conf ||
        echo "include /etc/redis/$file" >> /etc/redis/redis.conf
done
systemctl restart redis-server

# 4. Hero: one configuration, read with the login of a client, of the actors, of the supervisor. The drop-ins in
# /etc/hero/hero.toml.d are in force for all of them, as the other files are links to hero.toml.
login() { # FILE USER
    mkdir -p "$1.d"
    printf '[redis]\nurl = "redis+unix:///run/redis/redis-server.sock"\nusername = "%s"\n' "$2" \
        > "$1.d/redis.toml"
    chgrp -R hero "$1.d"
    chmod 750 "$1.d"
    chmod 640 "$1.d/redis.toml"
}
login /etc/hero/hero.toml hero-client
echo 'password_file = "/etc/hero/client.password"' >> /etc/hero/hero.toml.d/redis.toml
for name in actor supervisor backup; do
    ln -sfn hero.toml "/etc/hero/$name.toml"
    login "/etc/hero/$name.toml" "hero-$name"
    echo "password_file = \"/etc/hero/$name.password\"" >> "/etc/hero/$name.toml.d/redis.toml"
done
unit() { # FOLDER NAME OTHER: the units of a name, which do not see the password of the other
    mkdir -p -m 755 "/etc/systemd/system/$1"
    cat > "/etc/systemd/system/$1/redis.conf" << END
[Service]
SupplementaryGroups=redis
Environment=HERO_CONFIG=/etc/hero/$2.toml
InaccessiblePaths=/etc/hero/$3.password
END
    chmod 644 "/etc/systemd/system/$1/redis.conf"
}
unit hero@.service.d actor supervisor
unit hero@supervisor.service.d supervisor actor

# 5. The units: these three, and all that ran before.
systemctl daemon-reload
systemctl enable hero@supervisor hero@osis-default-1 hero@python-default-1
# shellcheck disable=SC2086
systemctl restart hero@supervisor hero@osis-default-1 hero@python-default-1 $units
for unit in $(running); do serves "$unit"; done

# 6. A job, as a client; what Redis keeps; a backup, for a timer of yours.
hero exec -t osis -e '40 + 2'
hero check --redis
HERO_CONFIG=/etc/hero/backup.toml hero backup /var/backups/hero.jsonl

# The administrator of Redis:
#     redis-cli -s /run/redis/redis-server.sock --user admin --pass "$(cat /etc/hero/admin.password)"
