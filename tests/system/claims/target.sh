# All units together, and the drop-ins that come as examples.

target_stops_and_starts() {
    inside systemctl stop hero.target
    for unit in $UNITS; do eventually 20 unit_is "$unit" inactive; done
    inside systemctl start hero.target
    for unit in $UNITS; do eventually 20 unit_is "$unit" active; done
}

examples_work() {
    local folder=/etc/systemd/system examples=/usr/share/doc/hero/examples/systemd
    inside mkdir -p $folder/hero@osis-default-1.service.d $folder/hero@sal-default-1.service.d
    inside cp $examples/memory-and-cpu.conf $folder/hero@osis-default-1.service.d
    inside cp $examples/sal.conf $folder/hero@sal-default-1.service.d
    inside systemctl daemon-reload
    is "" inside systemd-analyze verify --man=no hero@osis-default-1.service hero@sal-default-1.service
    is 1572864000 property hero@osis-default-1 MemoryMax
    is infinity property hero@osis-default-2 MemoryMax
    inside systemctl restart hero@osis-default-1
    inside systemctl start hero@sal-default-1
    is 42 alice hero exec -t osis -e '40 + 2'
    is read alice hero exec -t sal -e 'run_command("ls -d /home/alice").stdout.trim(); "read"'
    inside systemctl stop hero@sal-default-1
    inside rm -r $folder/hero@osis-default-1.service.d $folder/hero@sal-default-1.service.d
    inside systemctl daemon-reload
}

claim "hero.target stops and starts all units that are enabled" target_stops_and_starts
claim "the drop-ins that ship as examples are right" examples_work
