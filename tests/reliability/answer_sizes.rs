//! A Redis that bounds the size of calls and answers: no job stops its actor.

use crate::support::{Hero, Redis, keys, wait_until};

/// A program with bounds for large outputs, which stay in the hash up to `inline`.
fn hero(redis: &Redis, inline: &str) -> Hero {
    Hero::on(redis)
        .set("job.output_size_max", "\"16MiB\"")
        .set("job.output_inline_max", &format!("{inline:?}"))
}

#[test]
fn inputs_larger_than_the_output_buffer_limit_of_redis_are_read_in_pieces() {
    for inline in ["16MiB", "64KiB"] {
        let redis = Redis::start();
        let hero = hero(&redis, inline);
        let _actor = hero.actor("osis-default-1").start();
        let script = "let text = \"0123456789abcdef\"; for i in 0..18 { text += text; } text";
        hero.run(&["submit", "-t", "osis", "--id", "a", "-e", script]).code(0);
        let status = |id: &str| redis.field(&keys::job(id), "status").unwrap_or_default();
        wait_until("it ends", || status("a") == "finished");
        redis.ask_with::<String, _>("CONFIG SET client-output-buffer-limit", &["normal 2mb 0 0"]);
        let after = ["exec", "-t", "osis", "--after", "a", "-e", "INPUTS[\"a\"].len()"];
        hero.run(&after).code(0).stdout("4194304\n");
    }
}

#[test]
fn job_with_a_huge_field_of_a_stranger_ends_alone_in_an_error_that_names_the_bound() {
    const HUGE: &str = "return redis.call('HSET', KEYS[1], ARGV[1], string.rep('x', 64 * 1048576))";
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let huge = |id: &str, name: &str| {
        redis.ask_with::<u64, _>("EVAL", &[HUGE, "1", &keys::job(id), name]);
    };
    for name in ["script", "env_vars", "of_a_stranger"] {
        hero.run(&["submit", "-t", "osis", "--id", name, "-e", "1"]).code(0);
        huge(name, name);
    }
    hero.run(&["submit", "-t", "osis", "--id", "before", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "inputs", "--after", "before", "-e", "1"]).code(0);
    redis.ask_with::<String, _>("CONFIG SET client-output-buffer-limit", &["normal 1mb 0 0"]);
    let _actor = hero.actor("osis-default-1").tasks(1).start();
    for name in ["script", "env_vars", "of_a_stranger"] {
        hero.run(&["job", "wait", name]).code(1).says("which job.script_size_max of this actor");
    }
    hero.run(&["job", "wait", "inputs"]).code(0).stdout("1\n");
    hero.run(&[
        "submit", "-t", "osis", "--id", "after", "--after", "before", "--delay", "1h", "-e", "1",
    ])
    .code(0);
    huge("before", "output");
    hero.run(&["job", "edit", "after", "--delay", "0s"]).code(0);
    hero.run(&["job", "wait", "after"]).code(1).says("job.inputs_size_max");
    hero.run(&["exec", "-t", "osis", "-e", "42"]).code(0).stdout("42\n");
}

/// The settings of Redis that cut the connection of a large answer: each with a small value, and with none.
const ANSWER_BOUNDS: [[&str; 3]; 2] = [
    ["client-output-buffer-limit", "normal 1mb 0 0", "normal 0 0 0"],
    ["maxmemory-clients", "1mb", "0"],
];

#[test]
fn job_whose_claims_cut_the_connection_is_postponed_and_others_run() {
    for bound in ANSWER_BOUNDS {
        is_postponed_by(bound);
    }
}

fn is_postponed_by([bound, small, none]: [&str; 3]) {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.script_size_max", "\"4MiB\"");
    let file = redis.folder().join("large.rhai");
    std::fs::write(&file, format!("// {}\n1", "x".repeat(2 << 20))).expect("a file");
    let file = file.display().to_string();
    hero.run(&["submit", "-t", "osis", "--id", "large", &file]).code(0);
    for id in ["b", "c"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "42"]).code(0);
    }
    redis.ask_with::<String, _>(&format!("CONFIG SET {bound}"), &[small]);
    let actor = hero.actor("osis-default-1").start();
    for id in ["b", "c"] {
        hero.run(&["job", "wait", id]).code(0).stdout("42\n");
    }
    let field = |name: &str| redis.field(&keys::job("large"), name).unwrap_or_default();
    wait_until("it waits", || field("status") == "scheduled");
    assert!(actor.err().contains(bound), "{}", actor.err());
    redis.ask_with::<String, _>(&format!("CONFIG SET {bound}"), &[none]);
    let shown = hero.run(&["job", "show", "large"]).code(0).stdout;
    assert!(shown.contains(bound), "{}", &shown[..1000]);
    assert_eq!((field("crashes"), field("attempt")), (String::new(), "0".to_owned()));
}

/// The settings of Redis that bound a call, each with its smallest value.
const CALL_BOUNDS: [&str; 2] = ["proto-max-bulk-len", "client-query-buffer-limit"];

#[test]
fn output_larger_than_a_call_of_redis_ends_its_job_alone_in_an_error_that_names_the_bound() {
    for bound in CALL_BOUNDS {
        for inline in ["16MiB", "64KiB"] {
            let redis = Redis::start();
            let hero = hero(&redis, inline);
            redis.ask_with::<String, _>(&format!("CONFIG SET {bound}"), &["1mb"]);
            let script = "let text = \"0123456789abcdef\"; for i in 0..17 { text += text; } text";
            for (id, script) in [("a", "1"), ("large", script), ("b", "2")] {
                hero.run(&["submit", "-t", "osis", "--id", id, "-e", script]).code(0);
            }
            let actor = hero.actor("osis-default-1").start();
            let told = hero.run(&["job", "wait", "large"]).code(1).stderr;
            assert!(told.contains(bound) && told.contains(" MiB"), "{told}");
            for (id, output) in [("a", "1\n"), ("b", "2\n")] {
                hero.run(&["job", "wait", id]).code(0).stdout(output);
            }
            hero.run(&["exec", "-t", "osis", "-e", "3"]).code(0).stdout("3\n");
            let field = |name: &str| redis.field(&keys::job("large"), name);
            assert_eq!((field("attempt"), field("crashes")), (Some("1".to_owned()), None));
            assert!(
                actor.err().contains("large") && actor.err().contains(bound),
                "{}",
                actor.err()
            );
        }
    }
}

#[test]
fn submission_larger_than_a_call_of_redis_names_the_bound() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.script_size_max", "\"4MiB\"");
    let file = redis.folder().join("large.rhai");
    std::fs::write(&file, format!("// {}\n1", "x".repeat(2 << 20))).expect("a file");
    let file = file.display().to_string();
    for bound in CALL_BOUNDS {
        redis.ask_with::<String, _>(&format!("CONFIG SET {bound}"), &["1mb"]);
        let told = hero.run(&["submit", "-t", "osis", &file]).code(69).stderr;
        assert!(told.contains(bound) && told.contains("2.0 MiB"), "{told}");
        redis.ask_with::<String, _>(&format!("CONFIG SET {bound}"), &["512mb"]);
    }
    assert!(redis.all("JOB").is_empty());
}
