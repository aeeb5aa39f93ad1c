# A hanging daemon, and a dying one.

restarts_are() { # UNIT NUMBER
    [ "$(property "$1" NRestarts)" -ge "$2" ]
}

# Every claim here counts from its own start.
reset() {
    inside systemctl reset-failed "$1"
    inside systemctl restart "$1"
    is 0 property "$1" NRestarts
}

survives_a_hang() {
    local unit=hero@python-default-1 before
    reset $unit
    before=$(boot_of python-default-1)
    submit_slow hung 5
    eventually 10 job_is hung started
    inside sh -c "kill -STOP $(property $unit MainPID)"
    eventually 60 restarts_are $unit 1
    has "$(inside journalctl --no-pager --output=cat -u $unit)" "Watchdog timeout"
    eventually 30 unit_is $unit active
    eventually 60 job_is hung finished
    ended_once hung
    [ "$(boot_of python-default-1)" != "$before" ]
}

survives_a_kill() {
    local unit=hero@python-default-1 before
    reset $unit
    before=$(boot_of python-default-1)
    submit_slow killed 4
    eventually 10 job_is killed started
    inside sh -c "kill -KILL $(property $unit MainPID)"
    eventually 20 restarts_are $unit 1
    eventually 20 unit_is $unit active
    local now
    now=$(boot_of python-default-1)
    [ -n "$now" ] && [ "$now" != "$before" ]
    eventually 40 job_is killed finished
    ended_once killed
    is 1 job_field killed crashes
    # Nothing of the dead one is left: the folder of the live one is the only one, and is empty.
    eventually 5 is "" in_folder_of_jobs $unit find . -mindepth 2
    is 1 eval "in_folder_of_jobs $unit ls | wc -l"
    # It was restarted once.
    lacks "$(inside hero doctor 2>&1 || true)" "again and again"
}

claim "kill -STOP: the watchdog restarts the unit, and its job ends once" survives_a_hang
claim "kill -9: the unit is back under its name, and its job is done" survives_a_kill
