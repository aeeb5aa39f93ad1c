//! Programs that write jobs with plain commands of Redis: HSET and a push.

use super::{bash, has_status};
use crate::support::{Redis, wait_until};

/// Writes a job and pushes it, as any client of Redis can.
fn push(redis: &Redis, queue: &str, id: &str, fields: &[(&str, &str)]) {
    let mut words = vec!["id", id, "status", "dispatched"];
    for (name, value) in fields {
        words.extend([name, value]);
    }
    if !fields.iter().any(|(name, _)| *name == "script") {
        words.extend(["script", "echo $0 ran"]);
    }
    redis.ask_with::<i64, _>(&format!("HSET hero:job:{id}"), &words);
    redis.run(&format!("RPUSH hero:q:work:{queue} {id}"));
}

#[track_caller]
fn until(redis: &Redis, id: &str, status: &str) {
    wait_until(&format!("job {id} is {status}"), || has_status(redis, id, status));
}

#[track_caller]
fn error_of(redis: &Redis, id: &str) -> String {
    until(redis, id, "error");
    redis.field(&format!("hero:job:{id}"), "error").unwrap_or_default()
}

fn submitted(redis: &Redis) -> u64 {
    let count = redis.field("hero:meta:queue:stats:type:bash", "submitted");
    count.and_then(|count| count.parse().ok()).unwrap_or_default()
}

#[test]
fn a_job_pushed_to_a_waiting_actor_is_held_to_its_fields() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    // No actor serves this group yet.
    hero.run(&[
        "submit",
        "-t",
        "bash",
        "-g",
        "io",
        "--id",
        "first",
        "--unique-key",
        "k",
        "-e",
        "echo",
    ])
    .code(0);
    push(&redis, "type:bash", "failed", &[("script", "exit 1"), ("retries", "0")]);
    until(&redis, "failed", "error");

    push(&redis, "type:bash", "after", &[("prerequisites", r#"["first"]"#)]);
    push(&redis, "type:bash", "after-bare", &[("dependencies", "first")]);
    push(&redis, "type:bash", "after-any", &[("after_any", r#"["first","failed"]"#)]);
    push(&redis, "type:bash", "timed", &[("run_at", "2099-01-01T00:00:00Z")]);
    push(&redis, "type:bash", "twice", &[("unique_key", "k")]);
    push(&redis, "type:bash", "in-vain", &[("prerequisites", "failed, first")]);
    push(&redis, "type:bash", "unknown", &[("prerequisites", "nowhere")]);
    push(&redis, "type:bash", "free", &[("prerequisites", "None"), ("dependencies", "[]")]);

    for id in ["after", "after-bare", "after-any"] {
        until(&redis, id, "waiting_for_prerequisites");
    }
    until(&redis, "timed", "scheduled");
    until(&redis, "free", "finished");
    assert_eq!(error_of(&redis, "twice"), "job first has its unique_key and has not ended");
    assert_eq!(error_of(&redis, "in-vain"), "prerequisite failed: failed");
    assert_eq!(error_of(&redis, "unknown"), "prerequisite failed: nowhere");

    let _other = hero.actor("bash-io-1").start();
    for id in ["first", "after", "after-bare", "after-any"] {
        until(&redis, id, "finished");
    }
    assert!(has_status(&redis, "timed", "scheduled"));
    wait_until("each is counted once", || submitted(&redis) == 10);
}

#[test]
fn a_job_in_a_queue_without_actors_is_seen_and_held_to_its_fields() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    push(&redis, "type:bash:group:io", "first", &[("script_type", "bash"), ("group", "io")]);
    push(&redis, "type:bash:group:io", "after", &[("prerequisites", "first"), ("group", "io")]);
    push(&redis, "type:bash:group:io", "timed", &[("run_at", "2099-01-01T00:00:00Z")]);

    until(&redis, "after", "waiting_for_prerequisites");
    until(&redis, "timed", "scheduled");
    let jobs = hero.run(&["job", "list", "--status", "dispatched"]).code(0);
    assert!(jobs.stdout.contains("first"), "{}", jobs.stdout);
    let queues = hero.run(&["queue", "list"]).code(0);
    assert!(queues.stdout.contains("bash"), "{}", queues.stdout);
    assert_eq!(redis.ask::<Vec<String>>("LRANGE hero:q:work:type:bash:group:io 0 -1"), ["first"]);
    assert_eq!(submitted(&redis), 3);

    let _actor = hero.actor("bash-io-1").start();
    until(&redis, "after", "finished");
    assert_eq!(submitted(&redis), 3);
}

#[test]
fn adopted_jobs_keep_their_order_among_others() {
    let redis = Redis::start();
    let hero = bash(&redis);
    hero.run(&["submit", "-t", "bash", "--id", "own-0", "-e", "echo"]).code(0);
    for number in 0..450 {
        push(&redis, "type:bash", &format!("raw-{number}"), &[]);
        if number % 90 == 0 {
            let id = format!("own-{}", number + 1);
            hero.run(&["submit", "-t", "bash", "--id", &id, "-e", "echo"]).code(0);
        }
    }
    // A program that pushes to the front, as the older documents have it.
    redis.ask_with::<i64, _>("HSET hero:job:front", &["script", "echo", "status", "dispatched"]);
    redis.run("LPUSH hero:q:work:type:bash front");
    let _supervisor = hero.supervisor().start();
    wait_until("all are adopted", || submitted(&redis) == 457);

    let list: Vec<String> = redis.ask("LRANGE hero:q:work:type:bash 0 -1");
    let score = |id: &String| redis.score("hero:meta:queue:ready:type:bash", id);
    let scores: Vec<f64> = list.iter().filter_map(score).collect();
    assert!(scores.len() == 457 && scores.is_sorted(), "{scores:?}");
    let _actor = hero.actor("bash-default-1").tasks(16).start();
    wait_until("all have ended", || {
        redis.ask::<u64>("ZCARD hero:meta:job:index:finished:type:bash") == 457
    });
    let starts = redis.field("hero:meta:queue:stats:type:bash", "started");
    assert_eq!(starts.as_deref(), Some("457"));
}

#[test]
fn a_job_whose_popper_died_is_found() {
    let redis = Redis::start();
    let hero = bash(&redis);
    push(&redis, "type:bash", "lost", &[("script_type", "bash")]);
    push(&redis, "type:bash", "lost-later", &[("script_type", "bash"), ("prerequisites", "lost")]);
    assert_eq!(redis.ask::<String>("LPOP hero:q:work:type:bash"), "lost");
    assert_eq!(redis.ask::<String>("LPOP hero:q:work:type:bash"), "lost-later");
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    until(&redis, "lost", "finished");
    until(&redis, "lost-later", "finished");
    assert_eq!(redis.field("hero:job:lost", "attempt").as_deref(), Some("1"));
}

#[test]
fn values_in_the_spelling_of_any_language_are_understood() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    for (place, (field, value)) in [
        ("timeout", "0"),
        ("timeout", "None"),
        ("timeout", "30s"),
        ("retries", "null"),
        ("concurrent", "False"),
        ("concurrent", "yes"),
        ("env_vars", r#"{"A": 1, "B": true, "C": null}"#),
        ("prerequisites", "null"),
        ("retention", "1h"),
        ("run_at", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("spelled-{place}");
        push(&redis, "type:bash", &id, &[(field, value), ("script", "echo \"$A $B ${C-unset}\"")]);
        until(&redis, &id, "finished");
        if field == "env_vars" {
            let output = redis.field(&format!("hero:job:{id}"), "output");
            assert_eq!(output.as_deref(), Some("1 true unset"));
        }
    }
    push(&redis, "type:bash", "no-reply", &[("reply", "False")]);
    until(&redis, "no-reply", "finished");
    assert!(!redis.ask::<bool>("EXISTS hero:q:reply:no-reply"));
    for (id, field, value) in
        [("t", "timeout", "soon"), ("e", "env_vars", "[1]"), ("c", "concurrent", "maybe")]
    {
        push(&redis, "type:bash", id, &[(field, value)]);
        assert!(error_of(&redis, id).starts_with(&format!("invalid job: {field}")));
    }
}
