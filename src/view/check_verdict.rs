//! The verdict of `hero status --check`, printed as monitoring plugins print theirs:
//! `STATE - text | figures`, the figures as `name=value;warning;critical;min;max`.

use std::fmt::Write;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{HealthRules, HealthState, NamespaceHealth, Problem, Snapshot};
use crate::config::CheckConfig;
use crate::error::{Error, Exit};

/// The state of a check; its number is the exit code of monitoring plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl CheckState {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl From<HealthState> for CheckState {
    fn from(state: HealthState) -> Self {
        match state {
            HealthState::Ok => Self::Ok,
            HealthState::Warning => Self::Warning,
            HealthState::Critical => Self::Critical,
        }
    }
}

/// A reason for a state other than `ok`: a problem, or why there is nothing to judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReason {
    /// The state that it causes.
    pub state: CheckState,
    /// One sentence.
    pub reason: String,
    /// The kind of the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The part of the system that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The remedy, a line or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl CheckReason {
    fn of(problem: &Problem) -> Self {
        Self {
            state: HealthState::from(problem.severity).into(),
            reason: problem.text.clone(),
            kind: json!(problem.kind).as_str().map(str::to_owned),
            subject: Some(problem.subject.to_string()),
            remedy: Some(problem.remedy.clone()),
        }
    }
}

/// The verdict with its reasons, the worst first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckVerdict {
    /// The worst state of its reasons.
    pub state: CheckState,
    /// Its reasons; none for `ok`.
    pub reasons: Vec<CheckReason>,
    /// One line for `ok`.
    summary: String,
    /// The figures of monitoring plugins, with the thresholds of `[check]`.
    figures: String,
}

impl CheckVerdict {
    pub fn of(snapshot: &Snapshot, rules: &HealthRules) -> Self {
        let health = NamespaceHealth::of(snapshot, rules);
        Self {
            state: health.state.into(),
            reasons: health.wrong().map(CheckReason::of).collect(),
            summary: summary(snapshot),
            figures: figures(snapshot, &rules.check),
        }
    }

    /// The verdict if the state cannot be read: critical if Redis or the daemon does not answer, or refuses the login.
    pub fn without_answer(error: &Error) -> Self {
        let state = match error.exit {
            Exit::Unavailable | Exit::NotPermitted => CheckState::Critical,
            _ => CheckState::Unknown,
        };
        let reason = error.message.clone();
        let reasons = vec![CheckReason { state, reason, kind: None, subject: None, remedy: None }];
        Self { state, reasons, summary: String::new(), figures: String::new() }
    }

    /// The line for monitoring, and a line for every further reason.
    pub fn text(&self) -> String {
        // The figures begin after the first `|`.
        let plain = |text: &str| text.replace('|', "/").replace('\n', "; ");
        let first = self.reasons.first().map_or(&self.summary, |of| &of.reason);
        let mut text = format!("{} - {}", self.state.word(), plain(first));
        if self.reasons.len() > 1 {
            let _ = write!(text, " (and {} more)", self.reasons.len() - 1);
        }
        if !self.figures.is_empty() {
            text.push_str(" | ");
            text.push_str(&self.figures);
        }
        text.push('\n');
        for CheckReason { state, reason, .. } in self.reasons.iter().skip(1) {
            let _ = writeln!(text, "{} - {}", state.word(), plain(reason));
        }
        text
    }
}

/// The jobs that wait, and those that limits hold.
fn waiting(snapshot: &Snapshot) -> (u64, u64) {
    let queues = || snapshot.queues.iter();
    (queues().map(|(of, _)| of.depth).sum(), queues().map(|(of, _)| of.held).sum())
}

fn live_actors(snapshot: &Snapshot) -> u64 {
    snapshot.actor_counts.values().map(|count| count.live).sum()
}

fn summary(snapshot: &Snapshot) -> String {
    let (supervisors, actors) = (snapshot.supervisors.len(), live_actors(snapshot));
    let (jobs, held) = waiting(snapshot);
    format!("supervisors: {supervisors}, actors: {actors}, waiting jobs: {jobs}, held: {held}")
}

fn figures(snapshot: &Snapshot, of: &CheckConfig) -> String {
    let (jobs, held) = waiting(snapshot);
    let deepest = snapshot.queues.iter().map(|(of, _)| of.depth).max().unwrap_or_default();
    let open = snapshot.queues.iter().filter(|(of, _)| !of.paused);
    let oldest_wait = open.filter_map(|(of, _)| of.oldest_wait).max().unwrap_or_default();
    let due = snapshot.types.iter().map(|of| of.due).sum();
    let failed = snapshot.types.iter().filter_map(|of| of.hour).map(|hour| hour.failed).sum();
    // A figure alerts above its threshold, a threshold of `[check]` from its value on.
    let above = |threshold: u64| threshold.checked_sub(1).map(|below| below.to_string());
    let off = |value: u64| (value > 0).then(|| value.to_string());
    let seconds = |wait: Duration| off(wait.as_secs());
    let redis = &snapshot.redis;
    let of_memory = |percent| off(redis.memory_max_bytes / 100 * percent);
    let figure = |name: &str, value: String, warning: Option<String>, critical| {
        let (warning, critical): (_, Option<String>) = (warning.unwrap_or_default(), critical);
        format!("{name}={value};{warning};{};0", critical.unwrap_or_default())
    };
    let count = |name, number: u64, warning, critical| {
        figure(name, number.to_string(), above(warning), above(critical))
    };
    let least = off(of.supervisors_min).map(|least| format!("{least}:"));
    let wait = format!("{:.3}s", oldest_wait.as_secs_f64());
    let mut figures = vec![
        figure("supervisors", snapshot.supervisors.len().to_string(), None, least),
        count("actors", live_actors(snapshot), 0, 0),
        count("jobs", jobs, 0, 0),
        count("deepest", deepest, of.depth_warning, of.depth_critical),
        figure("wait", wait, seconds(of.wait_warning), seconds(of.wait_critical)),
        count("held", held, 0, 0),
        count("due", due, 0, 0),
        count("failed", failed, of.failed_warning, of.failed_critical),
        count("dead", snapshot.dead_in_last_hour(), of.dead_warning, of.dead_critical),
    ];
    let used = format!("{}B", redis.memory_used_bytes);
    let memory =
        figure("memory", used, of_memory(of.memory_warning), of_memory(of.memory_critical));
    figures.push(match redis.memory_max_bytes {
        0 => memory,
        most => format!("{memory};{most}"),
    });
    figures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LastHour;
    use crate::view::snapshot::tests::healthy_snapshot;

    fn verdict(change: impl Fn(&mut Snapshot)) -> CheckVerdict {
        let mut snapshot = healthy_snapshot();
        change(&mut snapshot);
        CheckVerdict::of(&snapshot, &HealthRules::default())
    }

    #[test]
    fn healthy_state_is_one_line_with_its_figures() {
        let verdict = verdict(|_| {});
        assert_eq!(verdict.state, CheckState::Ok);
        assert_eq!(
            verdict.text(),
            "OK - supervisors: 1, actors: 2, waiting jobs: 3, held: 0 | supervisors=1;;1:;0 \
             actors=2;;;0 jobs=3;;;0 deepest=3;;;0 wait=2.000s;300;1800;0 held=0;;;0 due=1;;;0 \
             failed=0;9;;0 dead=0;0;;0 memory=3145728B;83886080;99614720;0;104857600\n"
        );
    }

    #[test]
    fn worst_reason_comes_first_and_the_others_have_lines_of_their_own() {
        let verdict = verdict(|of| {
            of.queues[0].1 = 0;
            of.types[0].due = 0;
            of.supervisors.clear();
        });
        let text = verdict.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("CRITICAL - 0 live supervisors (threshold 1) (and 1 more) | ")
        );
        assert_eq!(lines[1..], ["WARNING - queue type:osis has 3 jobs and no live actor"]);
        let reason = &verdict.reasons[1];
        assert_eq!(
            (reason.state, reason.kind.as_deref()),
            (CheckState::Warning, Some("queue_without_actor"))
        );
    }

    #[test]
    fn figure_of_dead_letters_alerts_as_the_verdict_does() {
        let hour = LastHour { finished: 0, failed: 0, dead: 2, since: Duration::from_hours(1) };
        let text =
            |kept| verdict(|of| (of.types[0].hour, of.types[0].dead) = (Some(hour), kept)).text();
        assert!(text(2).starts_with("WARNING - 2 dead letters in the last hour"), "{}", text(2));
        assert!(text(2).contains(" dead=2;0;"), "{}", text(2));
        assert!(text(0).starts_with("OK - ") && text(0).contains(" dead=0;0;"), "{}", text(0));
    }

    #[test]
    fn redis_that_does_not_answer_or_refuses_is_critical_and_a_wrong_file_is_unknown() {
        let verdict = |exit| CheckVerdict::without_answer(&Error::new(exit, "no | answer")).text();
        assert_eq!(verdict(Exit::Unavailable), "CRITICAL - no / answer\n");
        assert_eq!(verdict(Exit::NotPermitted), "CRITICAL - no / answer\n");
        assert_eq!(verdict(Exit::Config), "UNKNOWN - no / answer\n");
    }
}
