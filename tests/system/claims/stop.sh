# The end in order.

waits_for_a_job() {
    local unit=hero@python-default-1
    submit_slow waited 3
    eventually 10 job_is waited started
    inside systemctl stop $unit
    is finished job_field waited status
    is success property $unit Result
    is 0 property $unit ExecMainStatus
    is "" redis get hero:meta:actor:inst:python:default:1
    inside systemctl start $unit
}

gives_back_a_long_job() {
    local unit=hero@python-default-1
    configure drain '[actor]
drain_timeout = "2s"'
    inside systemctl restart $unit
    submit_slow given-back 12
    eventually 10 job_is given-back started
    inside systemctl stop $unit
    is dispatched job_field given-back status
    is given-back redis lindex hero:q:work:type:python 0
    is success property $unit Result
    # Nothing was charged for it.
    is 0 job_field given-back attempt
    inside systemctl start hero@python-default-2
    eventually 40 job_is given-back finished
    is python:default:2 job_field given-back actor
    ended_once given-back
    inside systemctl stop hero@python-default-2
    configure drain
    inside systemctl start $unit
}

# The bound is the unit's, the deadline the configuration's: a longer one is told to systemd.
waits_longer_than_the_unit_says() {
    local unit=hero@python-default-1
    configure drain '[actor]
drain_timeout = "90s"'
    inside systemctl restart $unit
    submit_slow patient 50
    eventually 10 job_is patient started
    inside systemctl stop $unit
    is finished job_field patient status
    is success property $unit Result
    configure drain
    inside systemctl start $unit
}

claim "systemctl stop waits for a job of 3 s" waits_for_a_job
claim "a job longer than the drain deadline goes back, and another instance finishes it" \
    gives_back_a_long_job
claim "a drain deadline beyond TimeoutStopSec= is kept" waits_longer_than_the_unit_says
