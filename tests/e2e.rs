//! End-to-end tests: the real program, its units as processes, and a private Redis.

mod ack;
mod answers;
pub(crate) mod api;
mod args;
mod artifacts;
mod asked_outputs;
mod backup;
mod batches;
mod bounds;
mod children;
mod commands;
mod completions;
mod control;
mod cookbook;
mod corrections;
mod cron;
mod cron_graphs;
mod cron_import;
mod cron_lateness;
mod cron_rules;
mod cron_times;
mod deaths;
mod dev;
mod doctor;
mod durability;
mod earlier_starts;
mod events;
mod fairness;
mod fallbacks;
mod files;
mod fleet;
mod fleet_table;
mod frozen_redis;
mod full_disk;
mod full_memory;
mod graphs;
mod held;
mod hooks;
mod hostile_server;
mod idle;
mod job_filters;
mod jobs;
mod kept_state;
mod labels;
mod lifetimes;
mod limits;
mod load;
mod log_files;
mod login;
mod machines;
mod many_jobs;
mod metrics;
mod named_scripts;
mod one_system;
mod oom_kills;
mod outage;
mod output;
mod parsing;
mod progress;
mod protocol;
mod queue_faces;
mod queues;
mod readme;
mod refusals;
mod remote;
mod results;
mod rotation;
mod run_and_wait;
mod running_settings;
mod sandboxed_daemon;
mod scripts;
mod secrets;
pub(crate) mod sessions;
mod shards;
mod shutdown;
mod signing;
mod status;
mod story;
mod supervisor;
mod terminal;
mod tls;
mod tokens;
mod top;
pub(crate) mod traces;
mod type_times;
mod unfinished;
mod unique;
mod units_of_systemd;
mod user_folders;
mod waits;
mod webhooks;
mod windows;

use crate::support::{Redis, keys, until};

/// Returns a field of a job's hash.
#[track_caller]
fn field(redis: &Redis, id: &str, name: &str) -> Option<String> {
    redis.field(&keys::job(id), name)
}

/// Returns the names of the commands that a help lists, without `help`: in groups in that of `hero` itself.
fn commands_in(help: &str) -> Vec<&str> {
    let (head, list) = match help.split_once("\nCommands:\n") {
        Some((_, list)) => (list.split("\n\n").next(), ""),
        None => (None, help.split_once("\nRun scripts:\n").map_or("", |(_, list)| list)),
    };
    let list = head.or_else(|| list.split("\nOptions:\n").next()).unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// Returns the control message that asks an actor for an answer.
fn ping(reply_to: &str) -> String {
    format!(r#"{{"cmd":"ping","reply_to":"{reply_to}"}}"#)
}

/// An osis script that runs until it is stopped.
const ENDLESS: &str = "loop {}";
