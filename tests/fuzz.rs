//! Mutated inputs for everything that other programs write and Hero parses: no panic, no endless loop,
//! and an accepted value reads back as it is printed.
//!
//! `corpus/TARGET/` has the inputs that the others are made from; each is tried as it stands too. An
//! input that fails is written to a file, whose name is printed: add it to the corpus. `make fuzz` goes
//! on for a time, with another seed each time.

mod mutate;
mod replies;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{number, seed};
use mutate::Mutator;

/// The inputs of each target where no time is set.
const INPUTS: usize = 3000;

/// Returns the corpus of a target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a corpus").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no corpus");
    paths.into_iter().map(|path| fs::read(path).expect("readable")).collect()
}

/// Gives a target its corpus and what is made of it.
fn try_all(target: &str, parse: fn(&[u8])) {
    let corpus = corpus(target);
    for input in &corpus {
        try_one(target, parse, input);
    }
    let until = number("FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut mutator = Mutator::new(&corpus, seed());
    let mut tried = 0;
    while until.map_or(tried < INPUTS, |until| Instant::now() < until) {
        try_one(target, parse, &mutator.next());
        tried += 1;
    }
}

fn try_one(target: &str, parse: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| parse(input))) {
        let file = std::env::temp_dir().join(format!("hero-fuzz-{target}-{}", fastrand::u32(..)));
        fs::write(&file, input).expect("written");
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("{target}: {text}\ninput in {}: {}", file.display(), input.escape_ascii());
    }
}

#[test]
fn files_of_variables_give_legal_variables_or_a_line() {
    try_all("env_file", targets::env_file);
}

#[test]
fn job_hashes_are_read_or_rejected_by_a_field() {
    try_all("job_hash", targets::job_hash);
}

#[test]
fn queue_entries_and_names_are_read_or_rejected() {
    try_all("queue_entry", targets::queue_entry);
}

#[test]
fn control_messages_are_read_or_rejected() {
    try_all("control_message", targets::control_message);
}

#[test]
fn configurations_are_read_or_rejected_with_one_line() {
    try_all("configuration", targets::configuration);
}

#[test]
fn cron_lines_are_read_or_rejected() {
    try_all("cron_line", targets::cron_line);
}

#[test]
fn crontabs_become_files_of_periodic_jobs() {
    try_all("crontab", targets::crontab);
}

#[test]
fn queries_are_read_or_rejected_with_a_column() {
    try_all("query", targets::query);
}
