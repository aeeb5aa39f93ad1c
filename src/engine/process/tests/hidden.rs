//! Tests of processes that escape from their job: in other sessions, below others, without a mark.

use super::*;

/// Returns a script that starts an orphan in a session of its own, which prints its pid, and then runs
/// `then`.
fn hiding(then: &str) -> String {
    format!(
        "(setsid /bin/bash -c 'echo $$ >&2; echo > \"$TMPDIR/there\"; exec sleep 600' >/dev/null & )
        until [ -e \"$TMPDIR/there\" ]; do sleep 0.01; done; {then}"
    )
}

/// Waits until not even a zombie is left. A search may miss an orphan while the kernel moves it from
/// an ending thread of another test to the next; a later search finds it.
fn assert_reaped(pid: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        assert!(Instant::now() < until, "it is still there: {stat}");
        end::sweep(None);
    }
}

#[test]
fn orphan_in_its_own_session_is_killed_at_any_end_of_the_job() {
    let engine = engine_with(&["/bin/bash", "{script}"], 1_000, 100);
    for (then, timeout_ms) in
        [("true", 60_000), ("exit 3", 60_000), ("kill -9 $$", 60_000), ("sleep 600", 1_500)]
    {
        let job = Job::lasting_ms(timeout_ms);
        let result = job.run(&engine, &hiding(then));
        assert_eq!(result.is_ok(), then == "true", "{then}: {result:?}");
        assert_reaped(&job.log.text()[0]);
    }
    let job = Job::stopped_by_its_first_line();
    let result = job.run(&engine, &hiding("sleep 600"));
    assert_eq!(result, Err(Failure::Stopped(StopReason::Requested)));
    assert_reaped(&job.log.text()[0]);
}

#[test]
fn orphan_below_an_orphan_is_killed() {
    let job = Job::default();
    let script = "(setsid /bin/bash -c 'setsid /bin/bash -c \"echo \\$\\$ >&2; \
        echo > $TMPDIR/there; exec sleep 600\" & exec sleep 600' >/dev/null & )
        until [ -e \"$TMPDIR/there\" ]; do sleep 0.01; done";
    job.run(&bash(), script).expect("success");
    assert_reaped(&job.log.text()[0]);
}

#[test]
fn orphan_without_a_mark_is_killed_with_its_job() {
    let job = Job::default();
    let script =
        "(env -i setsid /bin/bash -c \"echo \\$\\$ >&2; echo > $TMPDIR/there; exec sleep 600\" \
        >/dev/null & )
        until [ -e \"$TMPDIR/there\" ]; do sleep 0.01; done";
    while_another_job_runs(|| {
        job.run(&bash(), script).expect("success");
        assert_reaped(&job.log.text()[0]);
    });
}

#[test]
fn orphan_with_the_mark_of_another_job_is_killed_with_its_own() {
    let job = Job::default();
    while_another_job_runs(|| {
        // The marks of all jobs that have run so far and of those that come next.
        let script = "for run in $(seq 300); do
            (HERO_RUN_ID=${HERO_RUN_ID%.*}.$run setsid /bin/bash -c 'echo $$ >> $TMPDIR/pids; \
                exec sleep 600' > /dev/null 2>&1 &)
            done; until [ \"$(cat $TMPDIR/pids | wc -l)\" = 300 ]; do sleep 0.01; done
            cat $TMPDIR/pids >&2";
        job.run(&bash(), script).expect("success");
        job.log.text().iter().for_each(|pid| assert_reaped(pid));
    });
}

/// Runs a test while an older job runs.
fn while_another_job_runs(test: impl FnOnce()) {
    let folder = tempfile::tempdir().expect("a folder");
    let (begun, end) = (folder.path().join("begun"), folder.path().join("end"));
    let script =
        format!("echo > {}; until [ -e {} ]; do sleep 0.01; done", begun.display(), end.display());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| Job::default().run(&bash(), &script));
        while !begun.exists() {
            std::thread::yield_now();
        }
        test();
        std::fs::write(&end, "").expect("written");
        running.join().expect("no panic").expect("success");
    });
}

#[test]
fn orphans_of_one_job_leave_other_jobs_running() {
    let job = Job::stopped_by_its_first_line();
    let folder = tempfile::tempdir().expect("a folder");
    let (there, go) = (folder.path().join("there"), folder.path().join("go"));
    let (there_text, go_text) = (there.display(), go.display());
    let script = format!(
        "(setsid /bin/bash -c 'echo > {there_text}; until [ -e {go_text} ]; do sleep 0.01; done; \
            echo alive >&2' >/dev/null & ) ; sleep 600"
    );
    std::thread::scope(|scope| {
        let running = scope.spawn(|| job.run(&bash(), &script));
        while !there.exists() {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            Job::default().run(&bash(), &hiding("true")).expect("success");
        }
        std::fs::write(&go, "").expect("written");
        let result = running.join().expect("no panic");
        assert_eq!(result, Err(Failure::Stopped(StopReason::Requested)));
    });
    assert_eq!(job.log.text(), ["alive"]);
}
