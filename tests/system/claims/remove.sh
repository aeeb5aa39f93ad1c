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
    inside apt-get purge -y -q hero
    for folder in /etc/hero /var/lib/hero /var/log/hero /run/hero /etc/logrotate.d/hero; do
        exits 1 inside test -e "$folder"
    done
    is "" inside find /etc/systemd/system /lib/systemd -name 'hero*'
    is "$jobs" eval "redis keys 'hero:job:*' | sort"
}

installs_again() {
    inside apt-get install -y -q /root/hero.deb
    inside systemctl start hero@osis-default-1
    is 42 alice hero exec -t osis -e '40 + 2'
    inside apt-get purge -y -q hero
}

claim "apt-get remove lets a job end, stops all units, keeps hero.toml" removes
claim "apt-get purge leaves nothing on the machine, and every job in Redis" purges
claim "the package can be installed again" installs_again
