//! Hostile scripts, each run in the sandbox and, with `UNSANDBOXED=1` and if that is harmless, without
//! one: the first run shows that it is contained, the second that it can do harm. `run` runs them, in
//! Python, because tests/system has it run them on a booted machine too; `scripts/` has them.

mod asked_outputs;
mod builds;
mod children;
mod environments;
mod hooks;
mod job_groups;
mod kept_state;
mod leftovers;
mod notify;
mod sal;
mod sessions;
mod signatures;
mod waits;

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Output;

use hero::config::Require;
use hero::sandbox::Support;

use crate::support::{Hero, Redis, needs, number};

/// The user `nobody`.
const UNPRIVILEGED: u32 = 65534;
const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/escape/run");
/// The smallest number of scripts.
const SCRIPTS_MIN: usize = 400;

#[expect(clippy::expect_used, reason = "the test fails")]
fn ran(hero: &Hero, args: &[&str]) -> Output {
    hero.command_of_user(RUN).args(args).output().expect("the scripts are run by Python")
}

/// Runs all scripts cold and warm, in an actor of this user or of another.
#[expect(clippy::print_stdout, reason = "the table is what the test is for")]
fn try_all(user: Option<u32>) {
    if !needs("landlock", || Support::of_this_kernel().level() >= Require::Full) {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("job.output_size_max", "\"64KiB\"")
        .set("job.output_overflow", "\"fail\"");
    let open: &[&str] = if number("UNSANDBOXED") == Some(1) { &["--open"] } else { &[] };
    let config = ran(&hero, &[&["--config"], open].concat()).stdout;
    let mut hero = hero.add(&String::from_utf8_lossy(&config));
    if let Some(user) = user {
        give(redis.folder(), user);
        hero = hero.of_user(user);
        if !needs("unprivileged-user", || ran(&hero, &["--count"]).status.success()) {
            return;
        }
    }
    let actor = hero.actor("hostile").start();
    let (folder, daemon) = (redis.folder().display().to_string(), actor.pid().to_string());
    let socket = format!("{folder}/redis.sock");
    let configuration = format!("{folder}/hero.toml");
    std::fs::write(&configuration, "its first line").expect("written");
    let program = env!("CARGO_BIN_EXE_hero");
    let args = [
        "--hero",
        program,
        "--folder",
        &folder,
        "--daemon",
        &daemon,
        "--redis",
        &socket,
        "--configuration",
        &configuration,
    ];
    let done = ran(&hero, &[&args, open].concat());
    let table = String::from_utf8_lossy(&done.stdout);
    println!("{table}{}", String::from_utf8_lossy(&done.stderr));
    let bad =
        table.lines().filter(|line| line.starts_with("NOT HELD") || line.starts_with("HARMLESS"));
    assert!(done.status.success(), "{:#?}", bad.collect::<Vec<_>>());
}

/// Makes a folder and all that is in it another user's.
fn give(folder: &Path, user: u32) {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    for path in entries.map(|entry| entry.path()).chain([folder.to_owned()]) {
        chown(path, Some(user), Some(user)).expect("given");
    }
}

#[test]
fn hostile_scripts_are_contained() {
    try_all(None);
}

#[test]
fn hostile_scripts_of_an_unprivileged_user_are_contained() {
    if needs("root", || nix::unistd::geteuid().is_root()) {
        try_all(Some(UNPRIVILEGED));
    }
}

#[test]
fn no_script_is_lost() {
    let redis = Redis::absent(false);
    let count = ran(&Hero::on(&redis), &["--count"]).stdout;
    let count: usize = String::from_utf8_lossy(&count).trim().parse().expect("a number");
    assert!(count >= SCRIPTS_MIN, "{count}");
}
