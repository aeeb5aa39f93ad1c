//! The story of a job in the log: one line per event, each with its id, its type and its queue.

use std::fs;

use super::sandboxed_daemon::{config_of, reload};
use super::{field, until};
use crate::support::{Hero, Process, Redis, keys, wait_until};

/// Returns the lines of a job, without time, level and fields.
fn story(processes: &[&Process], id: &str) -> Vec<String> {
    let told = |line: &str| {
        let text = line.split_once(" job ").filter(|_| line.contains(&format!("job_id={id} ")))?.1;
        Some(text.split(" job_id=").next().unwrap_or_default().to_owned())
    };
    let mut lines: Vec<(String, String)> = processes
        .iter()
        .flat_map(|process| {
            let err = process.err();
            let time = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
            err.lines().filter_map(|line| Some((time(line), told(line)?))).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, text)| text).collect()
}

/// Checks that each line begins and ends with these texts.
#[track_caller]
fn tells(story: &[String], expected: &[(&str, &str)]) {
    let holds = story.len() == expected.len()
        && story
            .iter()
            .zip(expected)
            .all(|(line, (begin, end))| line.starts_with(begin) && line.ends_with(end));
    assert!(holds, "{story:#?}");
}

#[test]
fn log_reports_schedule_claims_retry_with_its_reason_and_dead_letter_by_the_id() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let python = hero.actor("python-default-1").start();
    let supervisor = hero.supervisor().start();
    let submit = ["submit", "-t", "python", "--id", "a", "--delay", "200ms", "--caller", "alice"];
    hero.run(&[&submit[..], &["--retries", "1", "-e", "raise SystemExit(3)"]].concat()).code(0);
    until(&redis, "a", "error");
    wait_until("the end is logged", || python.err().contains("dead letter"));
    // The actor may write that it starts before the supervisor writes that the job was due.
    tells(
        &story(&[&supervisor], "a"),
        &[("a of python is due: dispatched to queue type:python", ""); 2],
    );
    tells(
        &story(&[&python], "a"),
        &[
            ("a of python starts from queue type:python; submitted ", " ms"),
            ("a of python failed in ", " ms: exit code 3"),
            ("a of python starts from queue type:python, attempt 2; submitted ", " ms"),
            ("a of python ended in error in ", ", attempt 2; it is a dead letter: exit code 3"),
        ],
    );
    let err = python.err();
    assert!(err.contains(" ago by alice, waited "), "{err}");
    assert!(err.contains("; it is retried in "), "{err}");
}

#[test]
fn log_reports_the_recovery_of_a_job_by_its_id() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"");
    let mut first = hero.actor("sal-default-1").start();
    let supervisor = hero.supervisor().start();
    let end = redis.folder().join("end");
    let script = format!("while !exist({end:?}) {{ sleep(0.01); }} 7");
    redis.push_job("sal", "a", &script);
    wait_until("the start is logged", || first.err().contains("starts from"));
    first.kill();
    fs::write(&end, "").expect("written");
    let second = hero.actor("sal-default-2").start();
    until(&redis, "a", "finished");
    wait_until("the end is logged", || second.err().contains("finished in"));
    let died = "a of sal goes back to the front of queue type:sal: actor sal:default:1 died \
                while it ran the job; crash 1 of 3";
    // The other actor may start the job, and end it, before the supervisor writes its line.
    wait_until("the recovery is told", || story(&[&supervisor], "a") == [died]);
    tells(
        &story(&[&first, &second], "a"),
        &[
            ("a of sal starts from queue type:sal", ""),
            ("a of sal starts from queue type:sal", ""),
            ("a of sal finished in ", "s"),
        ],
    );
    assert_eq!(field(&redis, "a", "crashes").as_deref(), Some("1"));
}

#[test]
fn failure_of_a_dependent_is_reported_by_its_id() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let supervisor = hero.supervisor().start();
    let submit = |id: &str, options: &[&str]| {
        let args = [&["submit", "-t", "osis", "--id", id][..], options].concat();
        hero.run(&args).code(0);
    };
    submit("a", &["--delay", "300ms", "-e", "throw 1"]);
    submit("b", &["--after", "a", "-e", "1"]);
    submit("c", &["--after", "b", "-e", "1"]);
    until(&redis, "c", "error");
    submit("late", &["--after", "a", "-e", "1"]);
    for (id, prerequisite) in [("b", "a"), ("c", "b"), ("late", "a")] {
        let told = format!("{id} of osis ended in error: prerequisite failed: {prerequisite}");
        wait_until(&told, || story(&[&supervisor], id) == [told.clone()]);
    }
}

#[test]
fn lost_pop_is_reported_by_the_id() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    redis.pop(&keys::work("type:osis"));
    let supervisor = hero.supervisor().start();
    let told = "a of osis goes back to the front of queue type:osis: an actor popped it and never \
                started it";
    wait_until("it is recovered", || story(&[&supervisor], "a") == [told]);
}

#[test]
fn configuration_selects_the_jobs_that_are_logged() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("log.jobs", "\"failed\"").set("log.slow", "\"300ms\"");
    let osis = hero.actor("osis-default-1").start();
    let run = |id, script| {
        hero.run(&["exec", "-t", "osis", "--id", id, "-e", script]);
        // The line of a failure comes after the lines of all jobs before.
        let mark = format!("{id}-mark");
        hero.run(&["exec", "-t", "osis", "--id", &mark, "-e", "throw 1"]).code(1);
        wait_until("the mark is logged", || !story(&[&osis], &mark).is_empty());
        story(&[&osis], id)
    };
    assert_eq!(run("quick", "1").len(), 0);
    assert_eq!(run("fails", "throw 1").len(), 1);
    let config = config_of(&osis);
    let text = fs::read_to_string(&config).expect("readable");
    fs::write(&config, text.replace("\"failed\"", "\"slow\"")).expect("written");
    reload(&osis);
    assert_eq!(run("quick2", "1").len(), 0);
    assert_eq!(run("slow", "sleep(0.4)").len(), 1);
    fs::write(&config, text.replace("\"failed\"", "\"all\"")).expect("written");
    reload(&osis);
    assert_eq!(run("quick3", "1").len(), 2);
}
