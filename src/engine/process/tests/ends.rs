//! Tests of how the processes of a job end.

use super::*;

#[test]
fn timeout_ends_the_process_group() {
    let job = Job::lasting_ms(300);
    assert_eq!(job.run(&bash(), "echo $$ >&2; sleep 600 & sleep 600"), Err(Failure::Timeout));
    assert_gone(&job.log.text()[0]);
}

#[test]
fn stop_ends_the_process_group_with_its_reason() {
    let job = Job::stopped_by_its_first_line();
    let result = job.run(&bash(), "sleep 600 & echo $$ >&2; wait");
    assert_eq!(result, Err(Failure::Stopped(StopReason::Requested)));
    assert_gone(&job.log.text()[0]);
}

#[test]
fn child_that_ignores_sigterm_is_killed_after_the_grace() {
    let job = Job::stopped_by_its_first_line();
    let engine = engine_with(&["/bin/bash", "{script}"], 1000, 200);
    let result = job.run(&engine, "trap '' TERM; echo $$ >&2; while :; do sleep 600; done");
    assert_eq!(result, Err(Failure::Stopped(StopReason::Requested)));
    assert_gone(&job.log.text()[0]);
}

#[test]
fn lost_lease_kills_without_grace() {
    let job = Job::default();
    job.cancel.request(StopReason::LeaseLost);
    let engine = engine_with(&["/bin/bash", "{script}"], 1000, 600_000);
    let result = job.run(&engine, "trap '' TERM; while :; do sleep 600; done");
    assert_eq!(result, Err(Failure::Stopped(StopReason::LeaseLost)));
}

#[test]
fn leftovers_of_a_finished_script_are_killed() {
    let job = Job::default();
    let script = "echo $$ >&2; (trap '' TERM HUP; sleep 600) & (sleep 600; echo late) & echo done";
    assert_eq!(job.run(&bash(), script).expect("success").output, "done");
    assert_gone(&job.log.text()[0]);
}

#[test]
fn all_forked_children_are_killed_after_the_timeout() {
    let job = Job::lasting_ms(700);
    let engine = engine_with(&["/bin/bash", "{script}"], 1000, 100);
    let script = "trap '' TERM; echo $$ >&2
        for i in {1..50}; do (trap '' TERM; sleep 600 & wait) & done; wait";
    assert_eq!(job.run(&engine, script), Err(Failure::Timeout));
    assert_gone(&job.log.text()[0]);
}
