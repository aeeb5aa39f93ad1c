//! Log files that cannot be written: on a disk that hangs or is full, or a pipe without a reader.

use std::path::Path;

use nix::sys::signal::Signal;

use super::{field, until};
use crate::support::{Disk, Hero, Redis, keys, wait_until};

/// Queues an osis job that has a log file.
fn submit(redis: &Redis, id: &str, script: &str) {
    redis.set_job(id, "log_path below/job.log");
    redis.push_job("osis", id, script);
}

fn last_heartbeat(redis: &Redis) -> String {
    let text: String = redis.get(&keys::presence("osis:default:1"));
    let presence: serde_json::Value = serde_json::from_str(&text).expect("a presence");
    presence["last_heartbeat"].as_str().expect("a time").to_owned()
}

#[test]
fn log_file_that_hangs_stops_neither_its_job_nor_others_nor_the_heartbeat() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.heartbeat", "\"100ms\"");
    let actor = hero.actor("osis-default-1").tasks(2);
    let actor = actor.env("HERO_STALL", Path::new(hero::failpoint::LOG_FILE)).start();
    submit(&redis, "endless", "loop { print(\"line\"); sleep(0.01) }");
    wait_until("the endless job has logged", || {
        redis.ask::<i64>(&format!("XLEN {}", keys::log("endless"))) > 0
    });
    let before = last_heartbeat(&redis);
    wait_until("the heartbeat goes on", || last_heartbeat(&redis) != before);
    hero.run(&["exec", "-t", "osis", "-e", "6 * 7"]).code(0).stdout("42\n");

    submit(&redis, "short", "print(\"said\"); 1");
    until(&redis, "short", "finished");
    let log = hero.run(&["job", "logs", "short"]).code(0).stdout;
    assert!(log.contains("said\n"), "{log}");
    assert!(log.contains("the log file lacks lines: the disk does not answer\n"), "{log}");
    let warnings = actor.err();
    let warnings = warnings.lines().filter(|line| line.contains("cannot write the log file"));
    assert_eq!(warnings.count(), 1, "{}", actor.err());

    hero.run(&["job", "stop", "endless"]).code(0);
    until(&redis, "endless", "error");
    assert_eq!(field(&redis, "endless", "error").as_deref(), Some("stopped_by_request"));
    actor.signal(Signal::SIGTERM);
    actor.ends().code(0);
}

#[test]
fn log_file_that_is_a_pipe_without_a_reader_fails_only_its_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let folder = redis.folder().join("logs/below");
    std::fs::create_dir_all(&folder).expect("a folder");
    nix::unistd::mkfifo(&folder.join("job.log"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let _actor = hero.actor("osis-default-1").tasks(1).start();
    submit(&redis, "piped", "print(\"said\"); 1");
    until(&redis, "piped", "error");
    let error = field(&redis, "piped", "error").expect("an error");
    assert!(error.contains("log_path"), "{error}");
    let before = last_heartbeat(&redis);
    wait_until("the heartbeat goes on", || last_heartbeat(&redis) != before);
    hero.run(&["exec", "-t", "osis", "-e", "6 * 7"]).code(0).stdout("42\n");
}

#[test]
fn log_file_on_a_full_disk_lacks_lines_and_its_job_finishes() {
    let redis = Redis::start();
    let Some(disk) = Disk::new(redis.folder().join("small")) else { return };
    let hero = Hero::on(&redis).set("job.log_dir", &format!("\"{}\"", disk.folder.display()));
    let actor = hero.actor("osis-default-1").tasks(2).start();
    submit(&redis, "endless", "loop { print(\"line\"); sleep(0.01) }");
    wait_until("the endless job has logged", || {
        std::fs::metadata(disk.folder.join("below/job.log")).is_ok_and(|data| data.len() > 0)
    });
    let filled = std::fs::write(disk.folder.join("of-another-user"), vec![0_u8; 4 << 20]);
    assert!(filled.is_err(), "the disk is not full");
    let text = "let s = \"x\"; s.pad(1000, \"x\"); for n in 0..100 { print(s); } 1";
    submit(&redis, "short", text);
    until(&redis, "short", "finished");
    let log = hero.run(&["job", "logs", "short"]).code(0).stdout;
    assert!(log.contains("the log file lacks lines: "), "{log}");
    let before = last_heartbeat(&redis);
    wait_until("the heartbeat goes on", || last_heartbeat(&redis) != before);
    hero.run(&["job", "stop", "endless"]).code(0);
    until(&redis, "endless", "error");
    assert_eq!(field(&redis, "endless", "error").as_deref(), Some("stopped_by_request"));
    assert!(actor.err().contains("cannot write the log file"), "{}", actor.err());
}

/// Hero whose bash scripts may read the folder of the test.
fn with_bash(redis: &Redis) -> Hero {
    std::fs::create_dir(redis.folder().join("logs")).expect("a folder");
    let folder = redis.folder().display().to_string();
    Hero::on(redis).set("type.bash.sandbox.read", &format!("[{folder:?}]"))
}

fn log_file(redis: &Redis) -> String {
    std::fs::read_to_string(redis.folder().join("logs/job.log")).unwrap_or_default()
}

#[test]
fn log_file_has_standard_output_in_order_with_the_log() {
    let redis = Redis::start();
    let hero = with_bash(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let log = redis.folder().join("logs/job.log").display().to_string();
    let script = format!(
        "said() {{ until grep -qs \"$1\" {log}; do sleep 0.01; done; }}
         echo one; said one; echo two >&2; said two; printf three"
    );
    let words = ["exec", "-t", "bash", "--log-path", "job.log", "-e", &script];
    let done = hero.run(&words).code(0).stdout("one\nthree\n");
    assert_eq!(done.stderr.trim(), "two", "the live log has no output");
    assert_eq!(log_file(&redis), "one\ntwo\nthree\n");
}

#[test]
fn output_of_a_failed_script_is_in_its_log_file_once() {
    let redis = Redis::start();
    let hero = with_bash(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let words = ["exec", "-t", "bash", "--log-path", "job.log", "-e", "echo said; exit 3"];
    hero.run(&words).code(3).says("said");
    assert_eq!(log_file(&redis), "said\n");
}

#[test]
fn secrets_of_a_job_are_hidden_in_its_log_its_file_and_the_journal() {
    let redis = Redis::start();
    let hero = with_bash(&redis)
        .set("job.log_to_journal", "true")
        .set("log.redact", r#"["*_TOKEN", "PIN*"]"#);
    let actor = hero.actor("bash-default-1").start();
    let script = "echo \"out $API_TOKEN\"; echo \"log $API_TOKEN $PIN2 $NAME\" >&2
                  echo \"$API_TOKEN\" >&2; exit 1";
    let variables =
        ["--env", "API_TOKEN=s3cret-value", "--env", "PIN2=abc", "--env", "NAME=visible"];
    let words = ["exec", "-t", "bash", "--id", "n", "--log-path", "job.log", "-e", script];
    hero.run(&[&words[..], &variables].concat()).code(1);
    let logs = hero.run(&["job", "logs", "n"]).code(0).stdout;
    wait_until("the end is in the journal", || {
        actor.err().contains("job n of bash ended in error")
    });
    for (place, text) in
        [("live log", logs), ("log file", log_file(&redis)), ("journal", actor.err())]
    {
        assert!(!text.contains("s3cret"), "the {place} shows it: {text}");
        assert!(text.contains("log *** abc visible"), "{place}: {text}");
    }
    assert!(log_file(&redis).contains("out ***\n"));
}
