//! Programs with older names beside Hero: written in Python from the background documents alone,
//! with nothing of Hero in them.

pub(crate) mod acl;
mod amqp;
mod bridge;
mod documents;
mod groups;
mod kills;
mod labels;
mod phases;
mod plain;
mod presence;
mod protocol_page;
mod queues;
mod requeues;
mod scenarios;
mod spellings;
mod stops;
mod vanished;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Hero, Redis, wait_until};

/// The legacy queue of most tests.
const W1: &str = "hero:work_queue:w1";

/// The interpreter of Debian, which has Debian's `python3-redis`.
const PYTHON: &str = "/usr/bin/python3";

/// The jobs of a test of a pair; `FOREIGN_JOBS` sets another number.
fn jobs(few: usize) -> usize {
    std::env::var("FOREIGN_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(few)
}

/// A program with older names, ended with the test.
struct Program {
    name: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts `programs/NAME.py` with the socket of a Redis and these words.
    #[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
    fn begin(redis: &Redis, name: &str, words: &[&str]) -> Self {
        let program = format!("{}/tests/foreign/programs/{name}.py", env!("CARGO_MANIFEST_DIR"));
        let file = |end: &str| redis.folder().join(format!("{name}-{:x}.{end}", fastrand::u64(..)));
        let (out, err) = (file("out"), file("err"));
        let child = Command::new(PYTHON)
            .arg(program)
            .arg(redis.folder().join("redis.sock"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(File::create(&out).expect("a file for output"))
            .stderr(File::create(&err).expect("a file for output"))
            .spawn()
            .expect("python3 is installed");
        Self { name: format!("{name} {}", words.join(" ")), child, out, err }
    }

    /// The same, for a program that serves: waits until it does.
    #[track_caller]
    fn serve(redis: &Redis, name: &str, words: &[&str]) -> Self {
        let mut program = Self::begin(redis, name, words);
        wait_until(&format!("{name} serves"), || {
            let ended = program.child.try_wait().expect("looking at a process");
            assert!(
                ended.is_none(),
                "{name}: {} (`make deps` installs python3-redis)",
                program.err()
            );
            program.out().contains("serves")
        });
        program
    }

    /// Runs one to its end, and returns its output.
    #[track_caller]
    fn run(redis: &Redis, name: &str, words: &[&str]) -> String {
        Self::begin(redis, name, words).ends()
    }

    /// Waits for its end, for as long as it goes on printing.
    #[track_caller]
    fn ends(mut self) -> String {
        let mut ended = false;
        while !ended {
            let printed = self.out().len();
            wait_until(&format!("`{}` ends or goes on", self.name), || {
                ended = self.child.try_wait().expect("looking at a process").is_some();
                ended || self.out().len() > printed
            });
        }
        let status = self.child.wait().expect("it has ended");
        assert!(
            status.success(),
            "`{}`: {} (`make deps` installs python3-redis)",
            self.name,
            self.err()
        );
        self.out()
    }

    fn out(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    fn err(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Ends it as a crash would.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The lines of JSON that a program printed.
fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Hero with a script type `bash`, in `dual` beside these legacy queues of it. What follows the key
/// of one, after a comma, says more about it.
fn dual(redis: &Redis, queues: &[&str]) -> Hero {
    let entry = |queue: &&str| {
        let (key, more) = queue.split_at(queue.find(',').unwrap_or(queue.len()));
        format!("{{ legacy = \"{key}\", type = \"bash\"{more} }}")
    };
    let queues: Vec<String> = queues.iter().map(entry).collect();
    bash(redis)
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", &format!("[{}]", queues.join(", ")))
}

/// Hero with a script type `bash`, and its own names alone.
fn bash(redis: &Redis) -> Hero {
    Hero::on(redis)
        .with_default_user()
        .set("type.bash.engine", "\"command\"")
        .set("type.bash.command", "[\"/bin/bash\", \"{script}\"]")
        // Its scripts count their runs in Redis.
        .set("type.bash.sandbox.unix_sockets", "true")
        .set("type.bash.sandbox.read", &format!("[{:?}]", redis.folder().display().to_string()))
}

/// A script of type `bash` that counts its runs in Redis, under a name, and prints another.
fn counting(redis: &Redis, name: &str, output: &str) -> String {
    let socket = redis.folder().join("redis.sock");
    format!(
        "redis-cli -s {} HINCRBY test:runs {name} 1 > /dev/null; echo {output}",
        socket.display()
    )
}

/// Returns the runs of each script by its name.
fn runs(redis: &Redis) -> std::collections::BTreeMap<String, u64> {
    redis.ask("HGETALL test:runs")
}

/// Every script ran, and none of them twice.
#[track_caller]
fn each_ran_once(redis: &Redis, jobs: usize) {
    let runs = runs(redis);
    assert_eq!(runs.len(), jobs, "so many scripts ran");
    let twice: Vec<_> = runs.iter().filter(|(_, runs)| **runs != 1).collect();
    assert!(twice.is_empty(), "ran more than once: {twice:?}");
}

/// Submits so many counting jobs with Hero's own client; returns their ids.
#[track_caller]
fn submit(redis: &Redis, hero: &Hero, prefix: &str, number: usize) -> Vec<String> {
    let ids: Vec<String> = (0..number).map(|n| format!("{prefix}-{n}")).collect();
    let line = |id: &String| {
        let script = counting(redis, id, &format!("out-{id}"));
        serde_json::json!({ "id": id, "script_type": "bash", "script": script }).to_string() + "\n"
    };
    let lines: String = ids.iter().map(line).collect();
    hero.run_with_input(&["submit", "--batch", "-"], &lines).code(0);
    ids
}

/// Every job finishes, for as long as others go on, with its own output.
#[track_caller]
fn all_finish(redis: &Redis, ids: &[String]) {
    let number = || redis.ask::<u64>("HLEN test:runs");
    for id in ids {
        let mut has_finished = false;
        while !has_finished {
            let ran = number();
            wait_until(&format!("job {id} has finished, or others go on"), || {
                has_finished = has_status(redis, id, "finished");
                has_finished || number() > ran
            });
        }
        let output = redis.field(&format!("hero:job:{id}"), "output");
        assert_eq!(output.as_deref().map(str::trim), Some(format!("out-{id}").as_str()));
    }
}

fn has_status(redis: &Redis, id: &str, status: &str) -> bool {
    redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some(status)
}

/// Returns the number of finished jobs in bash that Hero knows.
fn finished_in_bash(redis: &Redis) -> usize {
    redis.ask("ZCARD hero:meta:job:index:finished:type:bash")
}

/// Nothing is left but hashes of jobs that have finished, each in the index of its state if Hero
/// knows of it, and replies for a while.
#[track_caller]
fn nothing_is_left(redis: &Redis) {
    for prefix in [
        "hero:work_queue:",
        "hero:job:actor_queue:",
        "hero:stop_queue:",
        "hero:q:work:",
        "hero:meta:queue:ready:",
        "hero:meta:queue:held:",
        "hero:meta:boot:running:",
        "hero:meta:job:index:started:",
        "hero:meta:job:index:scheduled:",
        "hero:meta:job:index:waiting_for_prerequisites:",
        "hero:meta:job:pending:",
        "hero:meta:legacy:late:",
        "rhai_tasks:",
    ] {
        let mut left = Vec::new();
        wait_until(&format!("nothing is left in {prefix}"), || {
            left = redis.keys(prefix);
            left.is_empty()
        });
    }
    let mut link = redis.link();
    let mut ask = |pipeline: &redis::Pipeline| -> Vec<redis::Value> {
        if pipeline.cmd_iter().next().is_none() {
            return Vec::new();
        }
        pipeline.query(&mut link).expect("the private redis-server answers")
    };
    let (mut statuses, mut times) = (redis::pipe(), redis::pipe());
    for key in redis.keys("hero:job:") {
        statuses.cmd("HGET").arg(&key).arg("status");
        times.cmd("TTL").arg(&key);
    }
    for status in ask(&statuses) {
        assert_eq!(status, redis::Value::BulkString(b"finished".to_vec()));
    }
    let known = ask(&times).iter().filter(|time| **time != redis::Value::Int(-1)).count();
    let finished = finished_in_bash(redis);
    assert_eq!(finished, known, "a job expires if and only if it stands in the index of its end");
    let mut replies = redis::pipe();
    for prefix in ["hero:q:reply:", "hero:reply:", "rhai_reply:"] {
        for key in redis.keys(prefix) {
            replies.cmd("TTL").arg(key);
        }
    }
    for time in ask(&replies) {
        assert_ne!(time, redis::Value::Int(-1), "a reply stays for ever");
    }
}

/// Checks that the replies to an old client are the output of its scripts.
#[track_caller]
fn replies_are_right(printed: &str, jobs: usize) {
    let lines = lines(printed);
    assert_eq!(lines.len(), jobs);
    for line in lines {
        let id = line["id"].as_str().expect("an id");
        let reply = line["reply"].as_str().unwrap_or_default().trim();
        assert_eq!(reply, format!("out-{id}"), "the reply to {id}");
    }
}
