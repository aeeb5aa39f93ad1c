//! `hero status`: everything at one glance, and a check for monitoring.

mod tables;
mod verdict;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::Global;
use super::amqp::broker_lines;
use super::doctor::not_running;
use crate::client::{Client, ClientError, QueueDocument};
use crate::error::{Error, Exit};
use crate::store::RedisState;
use crate::view::{HealthRules, NamespaceHealth, Severity, Snapshot};
use verdict::CheckVerdict;

/// Show supervisors, actors, queues, jobs and Redis; or check them for monitoring
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero status\n  hero status --check\n  hero status --json\n\n\
                  HOLDING: actors that take no jobs, as their machine is overloaded. AFTER: jobs that wait for \
                  others.\n\
                  SCHEDULED: jobs that wait for their time; DUE: scheduled jobs whose time has come. HELD: jobs \
                  that\n\
                  wait for a slot in a limit.\n\n\
                  With --check the first line begins with OK, WARNING or CRITICAL and ends with figures \
                  after a `|`, as monitoring plugins print them. Exit codes: 0 OK, 1 warning, 2 \
                  critical, also if Redis does not answer or refuses the login; 3 if that cannot be known, since \
                  the configuration is wrong. [check] of hero.toml(5) has the \
                  thresholds.")]
pub(super) struct Status {
    /// Compare with the thresholds of the configuration, and print one line with the verdict
    #[arg(long)]
    check: bool,
}

impl Status {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        match look(global) {
            Ok((snapshot, rules)) if self.check => {
                let verdict = CheckVerdict::of(&snapshot, &rules);
                checked(global, || document(&snapshot), &verdict)
            }
            Ok((snapshot, rules)) => {
                global.print(
                    || document(&snapshot),
                    || {
                        let tables =
                            tables::of(&snapshot, wrong(&snapshot, &rules, global), global.look());
                        format!("{tables}{}", broker_lines(&snapshot.brokers))
                    },
                )?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) if self.check && error.exit != Exit::Output => {
                checked(global, || json!({}), &CheckVerdict::without_redis(&error))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns what is wrong, the worst first, and the units of this machine that do not run; empty if all is well.
fn wrong(snapshot: &Snapshot, rules: &HealthRules, global: &Global) -> String {
    let health = NamespaceHealth::of(snapshot, rules);
    let told = health.wrong().map(|problem| {
        let word = if problem.severity == Severity::Critical { "WRONG" } else { "LOOK" };
        tables::wrapped(word, &problem.text)
    });
    let units = not_running(global).into_iter().map(|unit| tables::wrapped("UNIT", &unit));
    let lines: String = told.chain(units).collect();
    if lines.is_empty() { lines } else { format!("{lines}        remedies: hero doctor\n") }
}

fn look(global: &Global) -> Result<(Snapshot, HealthRules), Error> {
    let config = global.config()?;
    let client = global.client()?;
    let address = config.redis.redacted_url();
    let read = async {
        match Snapshot::read(&client, address).await {
            Ok(snapshot) => Ok(snapshot),
            Err(error) => Err(named(&client, config.redis.shards, error).await),
        }
    };
    let snapshot = super::block_on(read)?;
    Ok((snapshot, HealthRules::from(config)))
}

/// Names the shards that are away in an error, if others are there.
async fn named(client: &Client, shards: u16, error: ClientError) -> Error {
    let mut error = Error::from(error);
    if error.exit != Exit::Unavailable || shards == 1 {
        return error;
    }
    let away = client.system().shards_away().await;
    if !away.is_empty() && away.len() < usize::from(shards) {
        let lines: Vec<String> =
            away.iter().map(|(shard, reason)| format!("shard {shard}: {reason}")).collect();
        let number = away.len();
        error.message = format!("{number} of {shards} shards away: {}", lines.join("; "));
    }
    error
}

/// Prints the verdict, and returns its exit code.
fn checked(
    global: &Global,
    document: impl FnOnce() -> Value,
    verdict: &CheckVerdict,
) -> Result<ExitCode, Error> {
    let document = || {
        let mut document = document();
        document["check"] = verdict.document();
        document
    };
    global.print(document, || verdict.text())?;
    Ok(verdict.exit())
}

/// Returns the document of `--json`, whose members stay: docs/status.md describes it.
fn document(of: &Snapshot) -> Value {
    let actors = of.actor_counts.iter();
    let actors = actors.map(|(name, count)| with(json!(count), "script_type", name));
    let queues = of.queues.iter();
    let queues = queues.map(|(of, actors)| with(json!(QueueDocument::from(of)), "actors", actors));
    let types = of.types.iter().map(|one| with(json!(one), "held", of.held(&one.script_type)));
    let mut document = json!({
        "paused": of.pauses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "redis": redis(&of.address, &of.redis),
        "supervisors": of.supervisors,
        "brokers": of.brokers,
        "actors": actors.collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
        "types": types.collect::<Vec<_>>(),
    });
    if !of.shards.is_empty() {
        let shards = of.shards.iter();
        let shards =
            shards.map(|of| with(redis(&of.address, &of.redis), "shard", of.shard.number()));
        document["shards"] = shards.collect();
    }
    document
}

fn with(mut document: Value, name: &str, member: impl Serialize) -> Value {
    document[name] = json!(member);
    document
}

fn redis(address: &str, redis: &RedisState) -> Value {
    json!({
        "address": address,
        "version": redis.version,
        "role": redis.role,
        "replicas": redis.replicas,
        "memory_used_bytes": redis.memory_used_bytes,
        "memory_max_bytes": redis.memory_max_bytes,
        "eviction_policy": redis.eviction_policy,
        "durable": redis.is_durable(),
        "appends": redis.appends,
        "fsync": redis.fsync,
        "save_points": redis.save_points,
        "dangers": redis.dangers(),
    })
}
