//! The audit after the storm: every job is accounted for, in a table.

#![expect(clippy::print_stderr, reason = "the table is what the storm is run for")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::faults::FAULTS;
use super::observer::Kind;
use super::storm::Storm;
use crate::support::keys;

/// The jobs that did not end as they should.
#[derive(Default)]
struct Account {
    lost: Vec<String>,
    wrong_end: Vec<String>,
    never_ran: Vec<String>,
    wrong_output: Vec<String>,
    unexplained: Vec<String>,
    reruns: usize,
    crashes: usize,
}

/// Checks everything, and prints the table either way.
pub(crate) fn check(storm: &mut Storm) {
    let account = account(storm);
    let ends: u64 = ["osis", "sal", "sh"]
        .iter()
        .map(|of| {
            let ends = ["finished", "failed", "cancelled", "replaced"];
            ends.iter().map(|end| storm.world.count(of, end)).sum::<u64>()
        })
        .sum();
    let jobs = storm.expected.len() as u64;
    let twice = ends.saturating_sub(jobs).max(storm.observer.ended_twice.len() as u64);
    print(storm, &account, twice);
    let seed = storm.plan.seed;
    assert!(account.lost.is_empty(), "lost: {:?}; SEED={seed}", account.lost);
    assert_eq!(twice, 0, "ended twice: {:?}; SEED={seed}", storm.observer.ended_twice);
    assert_eq!(ends, jobs, "ends by the counters; SEED={seed}");
    assert!(account.wrong_end.is_empty(), "ended wrongly: {:?}; SEED={seed}", account.wrong_end);
    assert!(account.never_ran.is_empty(), "never ran: {:?}; SEED={seed}", account.never_ran);
    assert!(account.wrong_output.is_empty(), "outputs: {:?}; SEED={seed}", account.wrong_output);
    let unexplained = &account.unexplained;
    assert!(unexplained.is_empty(), "ran more often than faults explain: {unexplained:?}; {seed}");
    for kind in ["WORK", "READY", "RUNNING"] {
        let left = storm.world.redis.all(kind);
        assert!(left.is_empty(), "all jobs have ended, and these are not empty: {left:?}");
    }
    storm.world.check();
}

/// The jobs whose large output is not whole, or not the one copy of it that stays.
fn wrong_outputs(storm: &Storm) -> Vec<String> {
    let mut link = storm.world.redis.link();
    let large = storm.expected.iter().filter_map(|(id, of)| Some((id, of.large_output?)));
    let is_wrong = |(id, len): &(&String, usize)| {
        let job: hero::proto::job::JobId = id.parse().expect("legal");
        let mut asking = redis::pipe();
        asking.cmd("HGET").arg(keys::job(id)).arg("status");
        asking.cmd("STRLEN").arg(keys::keys().output(&job));
        asking.cmd("HSTRLEN").arg(keys::job(id)).arg("output");
        let (status, apart, inline): (Option<String>, usize, usize) =
            asking.query(&mut link).expect("redis answers");
        status.as_deref() == Some("finished") && apart + inline != *len
    };
    large.filter(is_wrong).map(|(id, _)| id.clone()).collect()
}

fn account(storm: &Storm) -> Account {
    let mut account = Account::default();
    let effects = std::fs::read_to_string(&storm.effects).unwrap_or_default();
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    for id in effects.lines() {
        *ran.entry(id).or_default() += 1;
    }
    let mut pipeline = redis::pipe();
    for id in storm.expected.keys() {
        pipeline.cmd("HMGET").arg(keys::job(id)).arg(&["status", "crashes", "attempts"]);
    }
    let hashes: Vec<(Option<String>, Option<usize>, Option<String>)> =
        pipeline.query(&mut storm.world.redis.link()).expect("redis answers");
    account.wrong_output = wrong_outputs(storm);
    for ((id, expected), (status, crashes, attempts)) in storm.expected.iter().zip(hashes) {
        // A job that was claimed ahead is not charged the first time.
        let uncharged = usize::from(crashes.is_some());
        let crashes = crashes.unwrap_or(0);
        account.crashes += crashes;
        let is_stopped = storm.stopped.contains(id);
        match status.as_deref() {
            Some("finished" | "error") if is_stopped => {}
            Some("finished") if expected.finishes => {}
            Some("error") if !expected.finishes => {}
            Some("finished" | "error") => account.wrong_end.push(id.clone()),
            _ => account.lost.push(id.clone()),
        }
        if expected.leaves_lines {
            let ran = ran.get(id.as_str()).copied().unwrap_or(0);
            let planned = 1 + expected.retries;
            account.reruns += ran.saturating_sub(planned);
            if ran == 0 && !is_stopped {
                account.never_ran.push(id.clone());
            }
            if ran > planned + crashes + uncharged {
                let attempts = attempts.unwrap_or_default();
                account.unexplained.push(format!(
                    "{id} ({ran} times, {planned} planned, {crashes} crashes): {attempts}"
                ));
            }
        }
    }
    account
}

fn print(storm: &Storm, account: &Account, twice: u64) {
    let mut table = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(table, "  {name:<42} {value:>10}");
    };
    for (fault, _, name) in FAULTS {
        row(name, storm.struck.get(&fault).copied().unwrap_or(0).to_string());
    }
    row("kills in all", storm.kills().to_string());
    row("jobs", storm.expected.len().to_string());
    row("lost", account.lost.len().to_string());
    row("ended twice", twice.to_string());
    row("deaths that jobs were charged with", account.crashes.to_string());
    row("reruns, as the scripts count", account.reruns.to_string());
    for (kind, name) in [(Kind::Successor, "by a successor"), (Kind::Lease, "by the lease")] {
        let (longest, number) = storm.observer.longest.get(&kind).copied().unwrap_or_default();
        row(&format!("longest of {number} recoveries {name}"), seconds(longest));
    }
    let longest = storm.back_to_work.iter().max().copied().unwrap_or_default();
    let name = format!("longest of {} returns after redis", storm.back_to_work.len());
    row(&name, seconds(longest));
    row("processes that gave up", storm.revived.to_string());
    row("duration", seconds(storm.began.elapsed()));
    row("SEED", storm.plan.seed.to_string());
    eprintln!("\n{table}");
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

/// Prints the fields of jobs that do not end.
pub(crate) fn explain(storm: &mut Storm) {
    let stuck: Vec<String> = storm.observer.open.iter().take(10).cloned().collect();
    eprintln!("{} jobs do not end, among them:", storm.observer.open.len());
    for id in stuck {
        let mut pipeline = redis::pipe();
        let fields = ["status", "attempt", "crashes", "boot_id", "actor", "updated_at"];
        pipeline.cmd("HMGET").arg(keys::job(&id)).arg(&fields);
        let fields: Option<(Vec<Option<String>>,)> = storm.observer.ask(&pipeline);
        eprintln!("  {id}: {fields:?}");
    }
    for unit in &mut storm.units {
        let log = unit.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n    ");
        let runs = unit.runs();
        eprintln!("  {} runs: {runs}\n    {last}", unit.name());
    }
}
