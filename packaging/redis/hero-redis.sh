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
# Later it gives Hero's users new passwords, while everything runs on, no unit is restarted and no job is lost:
#
#     sh /usr/share/doc/hero/examples/redis/hero-redis.sh rotate [actor|supervisor|client|backup]...
set -eu
examples=/usr/share/doc/hero/examples/redis
umask 077
socket=/run/redis/redis-server.sock

admin() { # COMMAND...: of Redis, as its administrator
    REDISCLI_AUTH=$(cat /etc/hero/admin.password) redis-cli -e -s $socket --user admin "$@"
}
rotate() { # NAME
    new=$(head -c 32 /dev/urandom | sha256sum | cut -c 1-64)
    hash=$(printf %s "$new" | sha256sum | cut -c 1-64)
    # Redis takes both passwords until every unit has the new one.
    admin ACL SETUSER "hero-$1" "#$hash" > /dev/null
    # In place: the file of the other units is hidden from a unit by a mount on it.
    echo "$new" > "/etc/hero/$1.password"
    sed -i "s/^\(user hero-$1 on #\)[^ ]*/\1$hash/" /etc/redis/hero-acl.conf
    # The units that run read it again.
    case "$1" in actor | supervisor) systemctl reload 'hero@*' ;; esac
    admin ACL SETUSER "hero-$1" resetpass "#$hash" > /dev/null
    echo "hero-$1 has a new password"
}
if [ "${1:-}" = rotate ]; then
    shift
    for name in ${*:-actor supervisor client backup}; do rotate "$name"; done
    hero check --redis > /dev/null
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

# 4. Hero: one configuration, read with the login of a client, of the actors, of the supervisor.
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

# 5. The units.
systemctl daemon-reload
systemctl enable hero@supervisor hero@osis-default-1 hero@python-default-1
systemctl restart hero@supervisor hero@osis-default-1 hero@python-default-1

# 6. A job, as a client; what Redis keeps; a backup, for a timer of yours.
hero exec -t osis -e '40 + 2'
hero check --redis
HERO_CONFIG=/etc/hero/backup.toml hero backup /var/backups/hero.jsonl

# The administrator of Redis:
#     redis-cli -s /run/redis/redis-server.sock --user admin --pass "$(cat /etc/hero/admin.password)"
