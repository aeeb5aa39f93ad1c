//! Programs with older names beside Hero: written in Python from the background documents alone,
//! with nothing of Hero in them.

mod bridge;
mod queues;
mod scenarios;
mod stops;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{Hero, Redis, wait_until};

/// The interpreter of Debian, which has Debian's `python3-redis`.
const PYTHON: &str = "/usr/bin/python3";

/// How many jobs a test of a pair runs: `FOREIGN_JOBS` says more.
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

    /// The same, for one that serves: waits until it does.
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

    /// Runs one to its end, and returns what it printed.
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

/// Hero with a script type `bash`, in `dual` beside these legacy queues of it.
fn dual(redis: &Redis, queues: &[&str]) -> Hero {
    let queues: Vec<String> =
        queues.iter().map(|key| format!("{{ legacy = \"{key}\", type = \"bash\" }}")).collect();
    bash(redis)
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", &format!("[{}]", queues.join(", ")))
}

/// Hero with a script type `bash`, and its own names alone.
fn bash(redis: &Redis) -> Hero {
    Hero::on(redis)
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

/// How often the scripts ran, by their names.
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
