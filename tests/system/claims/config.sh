# A configuration that is wrong.

failed_once() { # UNIT CODE
    eventually 10 unit_is "$1" failed
    is "$2" property "$1" ExecMainStatus
    # Longer than RestartSec=.
    throughout 5 unit_is "$1" failed
    is 0 property "$1" NRestarts
}

fails_once() {
    local unit=hero@osis-default-1 wrong
    wrong="/etc/hero/hero.toml.d/wrong.toml:2:1: "
    configure wrong '[actor]
taks = 3'
    inside systemctl reset-failed $unit
    exits 1 inside systemctl restart $unit
    failed_once $unit 78
    has "$(inside journalctl --no-pager --output=cat -u $unit -n 20)" "$wrong"
    # By hand the verdict is the same.
    exits 78 inside hero check osis-default-1
    has "$output" "$wrong"
    configure wrong
    inside systemctl start $unit
    exits 0 inside hero check osis-default-1
}

knows_no_such_unit() {
    exits 1 inside systemctl start hero@nonsense
    failed_once hero@nonsense 66
    has "$(inside journalctl --no-pager --output=cat -u hero@nonsense -n 20)" nonsense
    inside systemctl reset-failed hero@nonsense
}

claim "a wrong hero.toml: the unit fails once, with 78 and the line in the journal" fails_once
claim "a unit that nobody configured fails once, with 66" knows_no_such_unit
