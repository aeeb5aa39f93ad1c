# The machine restarts.

comes_back() {
    inside systemctl stop hero@python-default-1
    alice hero submit --reply-format json --id overnight -t python -e 'print("slept")'
    is dispatched job_field overnight status
    reboot_machine
    for unit in $UNITS; do eventually 30 unit_is "$unit" active; done
    eventually 30 job_is overnight finished
    ended_once overnight
    is inactive property hero@sal-default-1 ActiveState
}

claim "after a reboot the enabled units are back, and a job that was queued has run" comes_back
