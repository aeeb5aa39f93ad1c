# The machine: a Debian 12 root, cached as an archive, unpacked for each run, and booted by
# systemd-nspawn with a network of its own, so that its Redis is nobody else's.

CACHE=target/system
# What the root has beside Debian's minimum. Another list makes another archive.
ROOT_PACKAGES=systemd,systemd-sysv,dbus,redis-server,python3,logrotate
HOST_PACKAGES="mmdebstrap systemd-container debhelper lintian"
LOCK=/run/lock/hero-system-test

run_dir=
machine=

need_host_packages() {
    local missing=
    for package in $HOST_PACKAGES; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q ' installed$' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    echo "missing on this machine:$missing; installing with apt-get"
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
        > /dev/null
}

# The container takes the one place in the tree of control groups that nspawn has for it
# where no systemd runs, so there can be one at a time on a host.
take_lock() {
    exec 9> "$LOCK"
    flock -n 9 || { echo "another system test runs; waiting for it"; flock 9; }
}

build_package() {
    deb=${HERO_DEB:-}
    [ -z "$deb" ] || return 0
    echo "building the package"
    mkdir -p "$CACHE"
    packaging/build-deb > "$CACHE/build-deb.log" 2>&1 || {
        tail -n 30 "$CACHE/build-deb.log"
        echo "the package cannot be built"
        exit 1
    }
    deb=$(echo target/debian/hero_*.deb)
}

build_root() {
    local archive
    archive=$CACHE/bookworm-$(printf %s "$ROOT_PACKAGES" | cksum | cut -d' ' -f1).tar
    mkdir -p "$CACHE"
    if [ ! -e "$archive" ]; then
        echo "making a Debian 12 root, for this run and those to come"
        # The sources of this host are the ones that it can reach, if it is a Debian 12 too.
        local sources=
        if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
            sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources \
                -size +0 2> /dev/null || true)
        fi
        # shellcheck disable=SC2086
        mmdebstrap --quiet --format=tar --variant=minbase --include="$ROOT_PACKAGES" bookworm \
            "$archive.new" $sources
        mv "$archive.new" "$archive"
    fi
    run_dir=$(mktemp -d "$PWD/$CACHE/run.XXXXXX")
    mkdir "$run_dir/root"
    tar -C "$run_dir/root" -xf "$archive"
    # Kept over a reboot, and to be looked at afterwards.
    mkdir -p "$run_dir/root/var/log/journal"
    cp "$deb" "$run_dir/root/root/hero.deb"
}

boot() {
    keep_running < /dev/null > "$run_dir/console" 2>&1 9>&- &
    machine=$!
    await_boot
}

# With --keep-unit a reboot ends nspawn with 133, for its service to start it again. There is
# none, so this is what it would do.
keep_running() {
    local status=133
    trap - EXIT INT TERM
    while [ "$status" = 133 ]; do
        status=0
        systemd-nspawn --quiet --register=no --keep-unit --private-network \
            --machine=hero-system-test --hostname=hero-system-test --resolv-conf=off --timezone=off \
            --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" \
            -D "$run_dir/root" --boot || status=$?
    done
}

await_boot() {
    eventually 60 is_booted || { tail -n 20 "$run_dir/console"; exit 1; }
}

is_booted() {
    inside systemctl is-system-running | grep -qE '^(running|degraded)$'
}

# The first process of the machine. After a reboot it is another one.
leader() {
    local container
    container=$(pgrep -x -P "$machine" systemd-nspawn) && pgrep -P "$container" | head -n 1
}

# Runs a command in the machine, as root.
inside() {
    local pid
    pid=$(leader) && [ -n "$pid" ] || { echo "the machine is not up" >&2; return 1; }
    nsenter -t "$pid" -a env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive "$@" 9>&-
}

reboot_machine() {
    local before
    before=$(leader)
    inside systemctl reboot
    eventually 90 leader_is_other_than "$before"
    await_boot
}

leader_is_other_than() {
    local now
    now=$(leader)
    [ -n "$now" ] && [ "$now" != "$1" ]
}

machine_is_gone() {
    ! kill -0 "$machine" 2> /dev/null
}

# Ends what was started, and nothing else; leaves no mount and no machine.
machine_off() {
    trap - EXIT
    if [ -n "$machine" ] && ! machine_is_gone; then
        inside systemctl --no-block poweroff > /dev/null 2>&1 || true
        eventually 60 machine_is_gone > /dev/null || pkill -KILL -P "$machine" || true
        wait "$machine" 2> /dev/null || true
    fi
    if [ -n "$run_dir" ] && [ -d "$run_dir" ]; then
        if grep -q " $run_dir" /proc/self/mountinfo; then
            echo "still mounted below $run_dir; it stays"
        else
            rm -rf "$run_dir"
        fi
    fi
}
