# The machine: a Debian root, cached as an archive, unpacked for each run, and booted by
# systemd-nspawn with a private network, so that no other program reaches its Redis.

CACHE=target/system
# The release of Debian: bookworm is Debian 12, trixie is Debian 13.
SUITE=${HERO_SYSTEM_TEST_SUITE:-bookworm}
# The packages of the root beside Debian's minimum. Another list makes another archive.
ROOT_PACKAGES=systemd,systemd-sysv,libpam-systemd,dbus,redis-server,python3,logrotate,apt-utils
HOST_PACKAGES="mmdebstrap systemd-container debhelper lintian autopkgtest"
# Runs at the same time have numbers, and each a machine of its own.
NAME=hero-system-test${HERO_SYSTEM_TEST_NUMBER:+-of-$HERO_SYSTEM_TEST_NUMBER}
LOCK=/run/lock/$NAME

run_dir=
machine=
# The processes of further machines, by their number from 2 on.
further=()
# What the machine prints while it boots.
console=

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

# Without systemd on the host, nspawn has one fixed control group for containers, so that only one
# test with this number can run at a time.
take_lock() {
    exec 9> "$LOCK"
    flock -n 9 || { echo "another system test runs; waiting for it"; flock 9; }
}

build_package() {
    deb=${HERO_DEB:-}
    [ -z "$deb" ] || return 0
    echo "building the package with the program of the tests"
    mkdir -p "$CACHE"
    ${CARGO:-cargo} build --locked --workspace --bin hero || exit 1
    packaging/build-deb target/debug/hero > "$CACHE/build-deb.log" 2>&1 || {
        tail -n 30 "$CACHE/build-deb.log"
        echo "the package cannot be built"
        exit 1
    }
    deb=$(echo target/debian-test/hero_*_"$(dpkg --print-architecture)".deb)
}

# The package with the pages, beside the package.
doc_deb() {
    echo "$(dirname "$deb")"/hero-doc_*.deb
}

root_archive() {
    echo "$CACHE/$SUITE-$(printf %s "$ROOT_PACKAGES" | cksum | cut -d' ' -f1).tar"
}

create_root_archive() {
    local archive
    archive=$(root_archive)
    mkdir -p "$CACHE"
    if [ ! -e "$archive" ]; then
        echo "creating a Debian root, $SUITE; later runs use it again"
        # If this host has the same release, its own package sources are reachable.
        local sources=
        if grep -qs "^VERSION_CODENAME=$SUITE\$" /etc/os-release; then
            sources=$(find /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources \
                -size +0 2> /dev/null || true)
        fi
        # shellcheck disable=SC2086
        mmdebstrap --quiet --format=tar --variant=minbase --include="$ROOT_PACKAGES" "$SUITE" \
            "$archive.new" $sources
        mv "$archive.new" "$archive"
    fi
}

build_root() {
    create_root_archive
    run_dir=$(mktemp -d "$PWD/$CACHE/run.XXXXXX")
    mkdir "$run_dir/root"
    tar -C "$run_dir/root" -xf "$(root_archive)"
    # The journal survives a reboot.
    mkdir -p "$run_dir/root/var/log/journal"
    if [ -n "$deb" ]; then
        cp "$deb" "$run_dir/root/root/hero.deb"
        cp "$(doc_deb)" "$run_dir/root/root/hero-doc.deb"
    fi
}

boot() {
    console=$run_dir/console
    (
        [ -z "${HERO_SYSTEM_TEST_NUMBER:-}" ] || enter_control_group "$NAME"
        keep_running "$NAME" root --private-network
    ) < /dev/null > "$console" 2>&1 9>&- &
    machine=$!
    await_boot
}

# Creates a further machine with the files of the first. It has no Redis of its own, and no unit of Hero runs there yet.
create_further() { # NUMBER HOST
    local root=$run_dir/further-$1
    mkdir "$root"
    tar -C "$run_dir/root" --exclude='./var/lib/redis/*' --exclude='./var/log/journal/*' --exclude='./root/*' \
        --exclude='./usr/share/doc/*' --exclude='./srv/*' -cf - . | tar -C "$root" -xf -
    rm -f "$root/etc/machine-id" "$root"/etc/systemd/system/*.wants/hero@*
    ln -sf /dev/null "$root/etc/systemd/system/redis-server.service"
    echo "$2" > "$root/etc/hostname"
}

# Starts a further machine in the network of the first, so that it reaches the Redis of the first.
start_further() { # NUMBER
    local network
    network=/proc/$(leader)/ns/net
    (
        enter_control_group "$NAME-$1"
        keep_running "$NAME-$1" "further-$1" --network-namespace-path="$network"
    ) < /dev/null > "$run_dir/console-$1" 2>&1 9>&- &
    further[$1]=$!
}

# Runs a command of this file with a further machine in the place of the first.
on_machine() { # NUMBER COMMAND...
    local machine=${further[$1]} console=$run_dir/console-$1
    shift
    "$@"
}

# Ends a further machine at once, as a power cut does.
cut_power() { # NUMBER
    local first_process
    first_process=$(on_machine "$1" leader) || return 0
    kill -KILL "$first_process"
    eventually 20 on_machine "$1" machine_is_gone
    leave_no_control_group "$NAME-$1" 2> /dev/null || true
}

leave_no_control_group() { # NAME
    local hierarchy
    for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
        [ ! -d "$hierarchy/$1" ] || find "$hierarchy/$1" -depth -type d -exec rmdir {} +
    done
}

# nspawn makes the groups of its machine in the group that it is in; two machines need two.
enter_control_group() { # NAME
    local hierarchy
    for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
        [ -e "$hierarchy/cgroup.procs" ] || continue
        mkdir -p "$hierarchy/$1"
        echo "$BASHPID" > "$hierarchy/$1/cgroup.procs"
    done
}

# With --keep-unit, nspawn ends with 133 at a reboot and its service starts it again; without a
# service, this loop does.
keep_running() { # NAME FOLDER OPTION: the folder is one of this run
    local status=133
    trap - EXIT INT TERM
    while [ "$status" = 133 ]; do
        status=0
        systemd-nspawn --quiet --register=no --keep-unit "$3" \
            --machine="$1" --hostname="$1" --resolv-conf=off --timezone=off \
            --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" \
            -D "$run_dir/$2" --boot || status=$?
    done
}

await_boot() {
    eventually 60 is_booted || { tail -n 20 "$console"; exit 1; }
}

is_booted() {
    inside systemctl is-system-running | grep -qE '^(running|degraded)$'
}

# The first process of the machine; a reboot changes it.
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

# Ends the machine of this run and removes its folder.
machine_off() {
    trap - EXIT
    local number
    for number in "${!further[@]}"; do cut_power "$number"; done
    if [ -n "$machine" ] && ! machine_is_gone; then
        inside systemctl --no-block poweroff > /dev/null 2>&1 || true
        eventually 60 machine_is_gone > /dev/null || pkill -KILL -P "$machine" || true
        wait "$machine" 2> /dev/null || true
    fi
    if [ -n "$run_dir" ] && [ -d "$run_dir" ]; then
        if grep -q " $run_dir" /proc/self/mountinfo; then
            echo "a file system is still mounted below $run_dir; the folder is kept"
        else
            rm -rf "$run_dir"
        fi
    fi
}
