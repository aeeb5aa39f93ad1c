//! `hero status`: everything at one glance, and a check for monitoring.

mod document;
mod tables;
mod verdict;

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::Global;
use super::amqp::broker_lines;
use super::doctor::not_running;
use crate::client::{Client, ClientError};
use crate::error::{Error, Exit};
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
                checked(global, || document::of(&snapshot), &verdict)
            }
            Ok((snapshot, rules)) => {
                global.print(
                    || document::of(&snapshot),
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
    let away = client.shards_away().await;
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
    Ok(verdict.state.into())
}
