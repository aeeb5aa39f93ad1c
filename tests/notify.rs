//! Notifications, told to foreign programs: an HTTP server, a mail server, a program.

mod attacks;
mod hostile;
mod kept;
mod kills;
mod problems;
mod situations;
mod tls;
mod ways;
mod webhook;
mod wholes;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;

use crate::support::{Hero, Redis, keys, wait_until};

/// The interpreter of Debian, which has the servers.
const PYTHON: &str = "/usr/bin/python3";

/// A foreign program that receives messages, and writes each to a file of its folder. It is killed at the end.
pub(crate) struct Receiver {
    folder: PathBuf,
    program: PathBuf,
    pub(crate) port: u16,
    child: Child,
}

impl Receiver {
    /// Starts a program of `tests/notify/programs/`.
    pub(crate) fn start(redis: &Redis, program: &str) -> Self {
        let folder = redis.folder().join(program);
        std::fs::create_dir(&folder).expect("a folder");
        let program = Path::new("tests/notify/programs").join(program);
        let (port, child) = Self::begin(&program, &folder, None);
        Self { folder, program, port, child }
    }

    #[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
    fn begin(program: &Path, folder: &Path, port: Option<u16>) -> (u16, Child) {
        let mut command = Command::new(PYTHON);
        command.arg(program).arg(folder).args(port.map(|port| port.to_string()));
        let child = command.spawn().expect("python3 is installed");
        let file = folder.join("port");
        let read = || std::fs::read_to_string(&file).ok()?.trim().parse().ok();
        wait_until("the receiver listens", || read().is_some());
        (read().expect("a port"), child)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
        std::fs::remove_file(self.folder.join("port")).expect("it was there");
    }

    /// Starts it again at the same port.
    pub(crate) fn start_again(&mut self) {
        (_, self.child) = Self::begin(&self.program, &self.folder, Some(self.port));
    }

    /// Sets what it answers.
    pub(crate) fn answers(&self, text: &str) {
        std::fs::write(self.folder.join("answer"), text).expect("written");
    }

    /// Returns whether a request hangs, or has hung.
    pub(crate) fn hangs(&self) -> bool {
        self.folder.join("hangs").exists()
    }

    /// Returns all that it has received, in order.
    pub(crate) fn received(&self) -> Vec<Value> {
        let entries = std::fs::read_dir(&self.folder).expect("a folder");
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| file.extension().is_some_and(|of| of == "json"));
        files.sort();
        let read = |file: &PathBuf| std::fs::read_to_string(file).expect("a file");
        files.iter().map(|file| serde_json::from_str(&read(file)).expect("JSON")).collect()
    }

    /// Returns the bodies of all that it has received.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let body = |of: &Value| serde_json::from_str(of["body"].as_str().expect("text"));
        self.received().iter().map(|of| body(of).expect("JSON")).collect()
    }

    /// Waits until it has received so many.
    #[track_caller]
    fn awaits(&self, number: usize) {
        wait_until(&format!("{number} messages"), || self.received().len() >= number);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a program with one notification `ops`, which posts to the receiver.
fn hero(redis: &Redis, receiver: &Receiver, more: &str) -> Hero {
    let url = format!("http://127.0.0.1:{}/hook", receiver.port);
    Hero::on(redis).add(&format!("[notify.ops]\nwebhook = \"{url}\"\n{more}\n"))
}

/// Runs a job that fails.
fn fail(hero: &Hero, args: &[&str]) {
    let all = [&["exec", "-t", "osis", "-e", "throw \"broken disk\""], args].concat();
    hero.run(&all).code(1);
}

/// Runs a job that finishes.
fn finish(hero: &Hero, args: &[&str]) {
    hero.run(&[&["exec", "-t", "osis", "-e", "1"], args].concat()).code(0);
}

/// Waits until the supervisor wants events of these kinds.
fn wanted(redis: &Redis, kinds: &[&str]) {
    let key = keys().notify_wanted();
    let of = |kind: &&str| {
        redis.ask_with::<Option<String>, _>(&format!("HGET {key}"), &[*kind]).is_some()
    };
    wait_until("the supervisor wants events", || kinds.iter().all(&of));
}
