# systemctl reload.

tasks_are() {
    has "$(redis get hero:meta:actor:inst:osis:default:1)" "\"tasks\":$1,"
}

takes_a_good_file() {
    local unit=hero@osis-default-1 pid since
    pid=$(property $unit MainPID)
    since=$(inside date +%s)
    configure reload '[actor]
tasks = 7'
    inside systemctl reload $unit
    eventually 15 tasks_are 7
    is "$pid" property $unit MainPID
    is active property $unit ActiveState
    is 42 alice hero exec -t osis -e '40 + 2'
    lacks "$(inside journalctl --no-pager --output=cat -u $unit --since "@$since")" "denied"
}

refuses_a_broken_file() {
    local unit=hero@osis-default-1 pid
    pid=$(property $unit MainPID)
    configure reload '[actor]
tasks = 0'
    exits 1 inside systemctl reload $unit
    has "$(inside journalctl --no-pager --output=cat -u $unit -n 30)" \
        "/etc/hero/hero.toml.d/reload.toml:2:9: actor.tasks must be from 1 to 1024, not 0"
    # By the signal alone, too: the daemon checks for itself.
    inside sh -c "kill -HUP $pid"
    throughout 3 is "$pid" property $unit MainPID
    is active property $unit ActiveState
    tasks_are 7
    configure reload
    inside systemctl reload $unit
    eventually 15 tasks_are 4
    is 42 alice hero exec -t osis -e '40 + 2'
}

claim "systemctl reload takes what a good file changes, in the same process" takes_a_good_file
claim "systemctl reload fails for a broken file, and changes nothing" refuses_a_broken_file
