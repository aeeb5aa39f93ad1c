//! Programs that write jobs with plain commands of Redis: HSET and a push.

use super::{W1, bash, dual, finished_in_bash, has_status};
use crate::support::{Redis, until, wait_until};

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
    wait_until("all have ended", || finished_in_bash(&redis) == 457);
    let starts = redis.field("hero:meta:queue:stats:type:bash", "started");
    assert_eq!(starts.as_deref(), Some("457"));
}

#[test]
fn a_job_that_a_foreign_actor_popped_before_it_died_is_put_back() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    push(&redis, "type:bash", "lost", &[]);
    push(&redis, "type:bash", "lost-later", &[("prerequisites", "lost")]);
    wait_until("both are adopted", || submitted(&redis) == 2);
    assert_eq!(redis.ask::<String>("LPOP hero:q:work:type:bash"), "lost");
    let _actor = hero.actor("bash-default-1").start();
    until(&redis, "lost", "finished");
    until(&redis, "lost-later", "finished");
    assert_eq!(redis.field("hero:job:lost", "attempt").as_deref(), Some("1"));
}

#[test]
fn a_job_without_a_type_is_that_of_its_queue_and_one_of_another_state_ends() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    for (id, field, value) in [("bare", "note", "x"), ("empty", "status", "")] {
        redis.ask_with::<i64, _>(&format!("HSET hero:job:{id}"), &[field, value, "script", "echo"]);
    }
    redis.run("RPUSH hero:q:work:type:bash:group:io bare empty");
    for status in ["pending", "queued", "created", "waiting"] {
        redis.ask_with::<i64, _>(
            &format!("HSET hero:job:{status}"),
            &["status", status, "script", "echo"],
        );
        redis.run(&format!("RPUSH hero:q:work:type:bash:group:io {status}"));
        let error = error_of(&redis, status);
        assert!(error.starts_with(&format!("invalid job: status: `{status}`")), "{error}");
    }
    let jobs = hero.run(&["job", "list", "--status", "dispatched"]).code(0).stdout;
    assert!(jobs.contains("bare") && jobs.contains("empty"), "nobody serves the group: {jobs}");
    let _actor = hero.actor("bash-io-1").start();
    for id in ["bare", "empty"] {
        until(&redis, id, "finished");
        assert_eq!(redis.field(&format!("hero:job:{id}"), "group").as_deref(), Some("io"));
    }
}

#[test]
fn jobs_that_would_wait_for_each_other_end() {
    let redis = Redis::start();
    let hero = bash(&redis);
    for (id, prerequisite) in [("self", "self"), ("a", "b"), ("b", "a")] {
        redis.ask_with::<i64, _>(
            &format!("HSET hero:job:{id}"),
            &["status", "dispatched", "script", "echo", "prerequisites", prerequisite],
        );
    }
    let _supervisor = hero.supervisor().start();
    redis.run("RPUSH hero:q:work:type:bash self a b");
    for id in ["self", "b"] {
        assert_eq!(
            error_of(&redis, id),
            "invalid job: prerequisites: the job would wait for itself"
        );
    }
    assert_eq!(error_of(&redis, "a"), "prerequisite failed: b");
}

#[test]
fn a_list_of_an_illegal_name_is_reported() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let _supervisor = hero.supervisor().start();
    redis.run("RPUSH hero:q:work:type:OSIS lost");
    let told = || hero.run(&["migrate", "status"]).code(0).stdout;
    wait_until("it is named", || told().contains("hero:q:work:type:OSIS"));
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

fn reply(redis: &Redis, key: &str) -> String {
    let (_, reply): (String, String) = redis.ask(&format!("BLPOP {key} 20"));
    reply.trim_end().to_owned()
}

#[test]
fn a_reply_is_plain_where_the_job_or_the_configuration_says_so() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let actor = hero.actor("bash-default-1").start();
    push(&redis, "type:bash", "p", &[("script", "echo out"), ("reply_format", "plain")]);
    assert_eq!(reply(&redis, "hero:q:reply:p"), "out");
    push(&redis, "type:bash", "e", &[("script", "exit 3"), ("reply_format", "Plain")]);
    assert_eq!(reply(&redis, "hero:q:reply:e"), "exit code 3");
    push(&redis, "type:bash", "j", &[("script", "echo out")]);
    assert!(reply(&redis, "hero:q:reply:j").starts_with('{'));
    push(&redis, "type:bash", "x", &[("reply_format", "xml")]);
    let error = "invalid job: reply_format `xml` is not legal: json or plain";
    assert_eq!(error_of(&redis, "x"), error);
    drop(actor);

    let hero = bash(&redis).set("job.reply_format", "\"plain\"");
    let _actor = hero.actor("bash-default-2").start();
    push(&redis, "type:bash", "pp", &[("script", "echo out")]);
    assert_eq!(reply(&redis, "hero:q:reply:pp"), "out");
    push(&redis, "type:bash", "jj", &[("script", "echo out"), ("reply_format", "json")]);
    assert!(reply(&redis, "hero:q:reply:jj").starts_with('{'));
    // Hero's own client needs no JSON.
    hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    hero.run(&["exec", "-t", "bash", "-e", "exit 3"]).code(3).says("exit code 3");
}

#[test]
fn in_dual_a_job_of_plain_commands_gets_the_older_reply_too() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]).set("type.note.engine", "\"osis\"");
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    // This type has no legacy queue.
    let _other = hero.actor("note-default-1").start();
    for (queue, script) in [("type:bash", "echo 42"), ("type:note", "42")] {
        let id = queue.replace(':', "-");
        push(&redis, queue, &id, &[("script", script)]);
        assert_eq!(reply(&redis, &format!("hero:reply:{id}")), "42");
        assert!(reply(&redis, &format!("hero:q:reply:{id}")).starts_with('{'));
    }
}
