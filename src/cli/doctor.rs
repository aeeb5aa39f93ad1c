//! `hero doctor`: one page on what is wrong now, on this machine and in Redis, each with what to do.

mod machine;
mod namespace;
mod units;

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::Global;
use crate::error::Error;
use crate::proto::text::{counted, escape};
use crate::view::{Problem, ProblemKind, Severity, Subject};
pub(super) use units::not_running;

/// Say what is wrong on this machine and in Redis, and what to do
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero doctor\n  hero doctor --problems\n  hero doctor --json\n\n\
                        It changes nothing. Run it as root or as a member of the group hero: others may \
                        not read the configuration. Exit codes: 0 nothing is wrong, 1 something is."
)]
pub(super) struct Doctor {
    /// Print warnings and errors alone
    #[arg(long)]
    problems: bool,
}

impl Doctor {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let config = machine::configuration(global);
        let mut findings = Vec::new();
        match config {
            Err(finding) => findings.push(finding),
            Ok((config, valid)) => {
                findings.push(valid);
                findings.extend(machine::findings(config, global));
                findings.extend(units::findings(global));
                let of_redis = async {
                    Ok(namespace::findings(config, global, &units::running(global, config)).await)
                };
                findings.extend(super::block_on(of_redis)?);
            }
        }
        if global.of_user.is_some() {
            findings.iter_mut().for_each(DoctorFinding::remedy_for_user);
        }
        let number = |state| findings.iter().filter(|of| of.state == state).count() as u64;
        let (errors, warnings) = (number(FindingState::Error), number(FindingState::Warning));
        let is_wrong = errors + warnings > 0;
        if self.problems {
            findings.retain(DoctorFinding::is_problem);
        }
        global.print(
            || json!({ "errors": errors, "warnings": warnings, "findings": findings }),
            || {
                let sum = match (errors, warnings) {
                    (0, 0) => "nothing is wrong\n".to_owned(),
                    _ => format!(
                        "{}, {}\n",
                        counted(errors, "error", "errors"),
                        counted(warnings, "warning", "warnings")
                    ),
                };
                format!("{}{sum}", page(&findings))
            },
        )?;
        Ok(ExitCode::from(u8::from(is_wrong)))
    }
}

/// The part of the system that a finding is about. Findings are printed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingArea {
    Machine,
    Units,
    Redis,
    Jobs,
    Brokers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingState {
    Ok,
    /// Worth knowing, and not wrong.
    Note,
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct DoctorFinding {
    area: FindingArea,
    state: FindingState,
    text: String,
    /// The remedy; empty if nothing is wrong.
    remedy: String,
    /// The kind of the problem of the namespace that it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<ProblemKind>,
}

impl From<Problem> for DoctorFinding {
    fn from(problem: Problem) -> Self {
        let Problem { kind, severity, subject, text, remedy } = problem;
        let area = match subject {
            Subject::Redis(_) | Subject::Machine(_) => FindingArea::Redis,
            Subject::Supervisors
            | Subject::Supervisor(..)
            | Subject::PeriodicJob(_)
            | Subject::Actors(_)
            | Subject::Queue(_)
            | Subject::Queues
            | Subject::Jobs
            | Subject::DeadLetters
            | Subject::Notification(_) => FindingArea::Jobs,
            Subject::Broker(..) | Subject::AmqpQueue(_) => FindingArea::Brokers,
        };
        let state = match severity {
            Severity::Note => FindingState::Note,
            Severity::Warning => FindingState::Warning,
            Severity::Critical => FindingState::Error,
        };
        Self { area, state, text, remedy, kind: Some(kind) }
    }
}

impl DoctorFinding {
    fn new(area: FindingArea, state: FindingState, text: impl Into<String>, remedy: &str) -> Self {
        Self { area, state, text: text.into(), remedy: remedy.to_owned(), kind: None }
    }

    fn ok(area: FindingArea, text: impl Into<String>) -> Self {
        Self::new(area, FindingState::Ok, text, "")
    }

    fn note(area: FindingArea, text: impl Into<String>) -> Self {
        Self::new(area, FindingState::Note, text, "")
    }

    fn warning(area: FindingArea, text: impl Into<String>, remedy: &str) -> Self {
        Self::new(area, FindingState::Warning, text, remedy)
    }

    fn error(area: FindingArea, text: impl Into<String>, remedy: &str) -> Self {
        Self::new(area, FindingState::Error, text, remedy)
    }

    /// Changes the commands of its remedy into commands about the units of a user.
    fn remedy_for_user(&mut self) {
        let of_user =
            [("systemctl ", "systemctl --user "), ("journalctl -u ", "journalctl --user -u ")];
        for (command, for_user) in of_user {
            self.remedy = self.remedy.replace(command, for_user);
        }
    }

    fn is_problem(&self) -> bool {
        matches!(self.state, FindingState::Warning | FindingState::Error)
    }
}

fn page(findings: &[DoctorFinding]) -> String {
    let mut page = String::new();
    for (area, title) in [
        (FindingArea::Machine, "this machine"),
        (FindingArea::Units, "units of this machine"),
        (FindingArea::Redis, "redis"),
        (FindingArea::Jobs, "actors, queues and jobs"),
        (FindingArea::Brokers, "brokers of RabbitMQ"),
    ] {
        let mut of_area = findings.iter().filter(|finding| finding.area == area).peekable();
        if of_area.peek().is_none() {
            continue;
        }
        let _ = writeln!(page, "{title}");
        for finding in of_area {
            let state = match finding.state {
                FindingState::Ok => "ok",
                FindingState::Note => "note",
                FindingState::Warning => "warning",
                FindingState::Error => "ERROR",
            };
            let _ = writeln!(page, "  {state:<8} {}", escape(&finding.text));
            for line in finding.remedy.lines() {
                let _ = writeln!(page, "           -> {}", escape(line));
            }
        }
        page.push('\n');
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_each_area_once_with_remedies_below_their_findings() {
        let findings = [
            DoctorFinding::error(FindingArea::Jobs, "no actor", "start one"),
            DoctorFinding::ok(FindingArea::Machine, "the configuration is valid"),
            DoctorFinding::warning(FindingArea::Jobs, "dead\u{1b}", "look\nthen retry"),
        ];
        assert_eq!(
            page(&findings),
            "this machine\n  ok       the configuration is valid\n\nactors, queues and jobs\n  \
             ERROR    no actor\n           -> start one\n  warning  dead\\u{1b}\n           -> look\n           \
             -> then retry\n\n"
        );
    }
}
