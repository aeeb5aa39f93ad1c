//! `hero status`: everything at one glance, and a check for monitoring.

mod tables;

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::Global;
use super::amqp::broker_lines;
use super::doctor::not_running;
use crate::error::{Error, Exit};
use crate::view::{CheckState, CheckVerdict, StatusDocument};

/// Show supervisors, actors, queues, jobs and Redis; or check them for monitoring
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero status\n  hero status --check\n  hero status --json\n\n\
                  HOLDING: actors that take no jobs, as their machine is overloaded. AFTER: jobs that wait for \
                  others. \
                  SCHEDULED: jobs that wait for their time; DUE: scheduled jobs whose time has come. HELD: jobs \
                  that \
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
    pub(super) async fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let methods = global.methods();
        let read = async { methods?.typed::<StatusDocument>("system.status", json!({})).await };
        match read.await {
            Ok((document, status)) if self.check => print_check(global, document, &status.check),
            Ok((document, status)) => {
                let table = || {
                    let tables = tables::of(&status, wrong(&status, global), global.look());
                    format!("{tables}{}", broker_lines(&status.brokers))
                };
                global.print(|| document, table)?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) if self.check && error.exit != Exit::Output => {
                let verdict = CheckVerdict::without_answer(&error);
                print_check(global, json!({ "check": verdict }), &verdict)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns what is wrong, the worst first, and the units of this machine that do not run; empty if all is well.
fn wrong(status: &StatusDocument, global: &Global) -> String {
    let problems = status.check.reasons.iter().map(|of| {
        let word = if of.state == CheckState::Critical { "WRONG" } else { "LOOK" };
        tables::wrapped(word, &of.reason)
    });
    // The units of a daemon elsewhere are not of this machine.
    let is_here = matches!(global.remote(), Ok(None));
    let units = if is_here { not_running(global) } else { Vec::new() };
    let units = units.into_iter().map(|unit| tables::wrapped("UNIT", &unit));
    let lines: String = problems.chain(units).collect();
    if lines.is_empty() { lines } else { format!("{lines}        remedies: hero doctor\n") }
}

/// Prints the verdict, and returns its exit code.
fn print_check(
    global: &Global,
    document: Value,
    verdict: &CheckVerdict,
) -> Result<ExitCode, Error> {
    global.print(|| document, || verdict.text())?;
    Ok(ExitCode::from(verdict.state as u8))
}
