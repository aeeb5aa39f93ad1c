# The end of the package.

removes() {
    submit_slow last 3
    eventually 10 job_is last started
    inside apt-get remove -y -q hero
    is finished job_field last status
    is "" inside systemctl list-units --no-legend --plain 'hero*'
    is "" inside find /proc -maxdepth 1 -user hero
    exits 127 inside sh -c hero
    inside grep -q '^tasks = 3$' /etc/hero/hero.toml
}

purges() {
    local jobs
    jobs=$(redis keys 'hero:job:*' | sort)
    has "$jobs" hero:job:last
    lacks "$(inside apt-get purge -y -q hero 2>&1)" "warning"
    for folder in /etc/hero /var/lib/hero /var/log/hero /var/cache/hero /run/hero /etc/logrotate.d/hero; do
        exits 1 inside test -e "$folder"
    done
    # systemd has forgotten the units.
    is not-found inside systemctl show --property=LoadState --value hero@osis-default-1.service
    is "" inside find /etc/systemd/system /lib/systemd -name 'hero*'
    is "$jobs" eval "redis keys 'hero:job:*' | sort"
}

# As piuparts does: what a purge leaves, beside the users, which stay.
leaves_no_file_behind() {
    files_of_the_machine > "$run_dir/before"
    inside apt-get install -y -q /root/hero.deb
    inside apt-get purge -y -q hero
    files_of_the_machine > "$run_dir/after"
    is "" diff "$run_dir/before" "$run_dir/after"
}

# Without what any installation writes: lists and logs of dpkg and apt, caches, the users.
files_of_the_machine() {
    inside find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp \
        -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /var/lib/systemd -o -path /root \
        -o -path /var/lib/redis \) -prune -o -print |
        grep -vE '^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-?$' | sort
}

installs_again() {
    inside apt-get install -y -q /root/hero.deb
    inside systemctl start hero@osis-default-1
    is 42 alice hero exec -t osis -e '40 + 2'
    inside apt-get purge -y -q hero
}

# The lines that packaging/apt-repo prints.
installs_from_the_repository() {
    mkdir -p "$run_dir/root/srv"
    packaging/apt-repo --out "$run_dir/root/srv/apt" --url file:/srv/apt "$deb" "$(doc_deb)" > "$run_dir/lines"
    sed -n 's/^    //p' "$run_dir/lines" | inside sh -e
    is 42 inside hero dev -- hero exec -t osis -e '40 + 2'
    has "$(inside apt-cache policy hero)" "file:/srv/apt stable/main"
    inside apt-get purge -y -q hero
    # A list that somebody changed is not taken.
    inside sh -c 'echo >> /srv/apt/dists/stable/main/binary-amd64/Packages
        rm /srv/apt/dists/stable/main/binary-amd64/Packages.gz; rm -rf /var/lib/apt/lists/*'
    inside apt-get update 2>&1 | grep -q "Some index files failed" || return 1
    inside rm -rf /srv/apt /etc/apt/sources.list.d/hero.sources /etc/apt/keyrings/hero-archive-keyring.gpg
}

claim "apt-get remove lets a job end, stops all units, keeps hero.toml" removes
claim "apt-get purge leaves nothing on the machine, and every job in Redis" purges
claim "the package can be installed again" installs_again
claim "installed and purged once more, no file is left" leaves_no_file_behind
claim "a machine installs it from a signed repository by three lines" installs_from_the_repository
