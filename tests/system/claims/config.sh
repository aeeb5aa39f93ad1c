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

# Root reads everything, the user of the units does not.
checks_as_its_user() {
    local file=/etc/hero/hero.toml.d/late.toml
    configure late '[actor]
tasks = 3'
    inside hero check > /dev/null
    inside chmod 600 $file
    exits 78 inside hero check
    has "$output" "user hero cannot read $file (mode 0600); run: chown root:hero $file, chmod 0640 $file"
    exits 1 inside systemctl restart hero@osis-default-1
    failed_once hero@osis-default-1 78
    inside chown root:hero $file
    inside chmod 640 $file
    inside hero check > /dev/null
    inside systemctl reset-failed hero@osis-default-1
    inside systemctl start hero@osis-default-1
    configure late
}

# What reaches a unit by systemd is not for its user, and stays so.
judges_no_credential() {
    inside sh -c 'umask 077; mkdir -p /etc/credstore; printf secret > /etc/credstore/redis-password; chmod 700 /etc/credstore'
    exits 0 inside hero check
    lacks "$output" chown
    lacks "$(inside hero doctor)" chown
    inside rm /etc/credstore/redis-password
}

tells_how_redis_is() {
    inside hero check --redis > /dev/null
    inside systemctl stop redis-server
    exits 69 inside hero check --redis
    exits 0 inside hero check
    has "$output" "cannot be reached"
    inside systemctl start redis-server
}

prints_the_values_on_request() {
    local said
    said=$(inside hero check)
    has "$said" "configuration: valid"
    has "$said" "osis: available"
    lacks "$said" "[actor]"
    has "$(inside hero check --show)" "[actor]"
}

claim "hero check prints its verdict, and the values in force only on request" prints_the_values_on_request
claim "hero check by root fails on a file that the units may not read" checks_as_its_user
claim "a credential that root alone reads is no fault, and no remedy opens its folder" judges_no_credential
claim "hero check --redis exits with 69 while Redis is down" tells_how_redis_is
claim "a wrong hero.toml: the unit fails once, with 78 and the line in the journal" fails_once
claim "a unit that nobody configured fails once, with 66" knows_no_such_unit
