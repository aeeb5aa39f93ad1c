//! The findings of `hero doctor`: one sentence each, with what to do.

use std::fmt::Write;

use serde::Serialize;

use crate::proto::text::escape;
use crate::view::{Problem, ProblemKind, Severity, Subject};

/// The part of the system that a finding is about. Findings are printed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FindingArea {
    Machine,
    Units,
    Redis,
    Jobs,
    Brokers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FindingState {
    Ok,
    /// Worth knowing, and not wrong.
    Note,
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DoctorFinding {
    pub(super) area: FindingArea,
    pub(super) state: FindingState,
    pub(super) text: String,
    /// The remedy; empty if nothing is wrong.
    pub(super) remedy: String,
    /// The kind of the problem of the namespace that it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<ProblemKind>,
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

    pub(super) fn ok(area: FindingArea, text: impl Into<String>) -> Self {
        Self::new(area, FindingState::Ok, text, "")
    }

    pub(super) fn note(area: FindingArea, text: impl Into<String>) -> Self {
        Self::new(area, FindingState::Note, text, "")
    }

    pub(super) fn warning(area: FindingArea, text: impl Into<String>, remedy: &str) -> Self {
        Self::new(area, FindingState::Warning, text, remedy)
    }

    pub(super) fn error(area: FindingArea, text: impl Into<String>, remedy: &str) -> Self {
        Self::new(area, FindingState::Error, text, remedy)
    }

    /// Changes the commands of its remedy into commands about the units of a user.
    pub(super) fn remedy_for_user(&mut self) {
        let of_user =
            [("systemctl ", "systemctl --user "), ("journalctl -u ", "journalctl --user -u ")];
        for (command, for_user) in of_user {
            self.remedy = self.remedy.replace(command, for_user);
        }
    }

    pub(super) fn is_problem(&self) -> bool {
        matches!(self.state, FindingState::Warning | FindingState::Error)
    }
}

/// The findings as a page, by area.
pub(super) fn page(findings: &[DoctorFinding]) -> String {
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
