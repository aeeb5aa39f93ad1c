//! The verdict of `hero status --check`, printed as monitoring plugins print theirs:
//! `STATE - text | figures`, the figures as `name=value;warning;critical;min;max`.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::CheckConfig;
use crate::error::{Error, Exit};
use crate::view::{HealthRules, HealthState, NamespaceHealth, Problem, Snapshot};

/// The state of a check; `None` if it is not known.
type CheckState = Option<HealthState>;

fn word(state: CheckState) -> &'static str {
    match state {
        Some(HealthState::Ok) => "OK",
        Some(HealthState::Warning) => "WARNING",
        Some(HealthState::Critical) => "CRITICAL",
        None => "UNKNOWN",
    }
}

/// A reason for a state other than OK: a problem, or why there is nothing to judge.
#[derive(Debug, PartialEq, Eq)]
struct CheckReason {
    state: CheckState,
    text: String,
    problem: Option<Problem>,
}

/// The verdict with its reasons, the worst first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckVerdict {
    state: CheckState,
    reasons: Vec<CheckReason>,
    /// One line for an OK.
    summary: String,
    figures: String,
}

impl CheckVerdict {
    pub(super) fn of(snapshot: &Snapshot, rules: &HealthRules) -> Self {
        let health = NamespaceHealth::of(snapshot, rules);
        let reason = |problem: &Problem| CheckReason {
            state: Some(problem.severity.into()),
            text: problem.text.clone(),
            problem: Some(problem.clone()),
        };
        Self {
            state: Some(health.state),
            reasons: health.wrong().map(reason).collect(),
            summary: summary(snapshot),
            figures: figures(snapshot, &rules.check),
        }
    }

    /// The verdict if the state cannot be read: critical if Redis does not answer, or refuses the login.
    pub(super) fn without_redis(error: &Error) -> Self {
        let state = match error.exit {
            Exit::Unavailable | Exit::NotPermitted => Some(HealthState::Critical),
            _ => None,
        };
        let reasons = vec![CheckReason { state, text: error.message.clone(), problem: None }];
        Self { state, reasons, summary: String::new(), figures: String::new() }
    }

    /// Returns the exit code of monitoring plugins.
    pub(super) fn exit(&self) -> ExitCode {
        ExitCode::from(self.state.map_or(3, |state| state as u8))
    }

    /// The line for monitoring, and a line for every further reason.
    pub(super) fn text(&self) -> String {
        // The figures begin after the first `|`.
        let plain = |text: &str| text.replace('|', "/").replace('\n', "; ");
        let first = self.reasons.first().map_or(&self.summary, |reason| &reason.text);
        let mut text = format!("{} - {}", word(self.state), plain(first));
        if self.reasons.len() > 1 {
            let _ = write!(text, " (and {} more)", self.reasons.len() - 1);
        }
        if !self.figures.is_empty() {
            text.push_str(" | ");
            text.push_str(&self.figures);
        }
        text.push('\n');
        for CheckReason { state, text: reason, .. } in self.reasons.iter().skip(1) {
            let _ = writeln!(text, "{} - {}", word(*state), plain(reason));
        }
        text
    }

    pub(super) fn document(&self) -> Value {
        let state = |state: CheckState| word(state).to_lowercase();
        let reasons: Vec<Value> = self
            .reasons
            .iter()
            .map(|of| {
                let mut reason = json!({ "state": state(of.state), "reason": of.text });
                if let Some(Problem { kind, subject, remedy, .. }) = &of.problem {
                    reason["kind"] = json!(kind);
                    reason["subject"] = json!(subject);
                    reason["remedy"] = json!(remedy);
                }
                reason
            })
            .collect();
        json!({ "state": state(self.state), "reasons": reasons })
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
        assert_eq!(verdict.state, Some(HealthState::Ok));
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
        let reason = &verdict.document()["reasons"][1];
        assert_eq!(
            (&reason["state"], &reason["kind"]),
            (&"warning".into(), &"queue_without_actor".into())
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
        let verdict = |exit| CheckVerdict::without_redis(&Error::new(exit, "no | answer")).text();
        assert_eq!(verdict(Exit::Unavailable), "CRITICAL - no / answer\n");
        assert_eq!(verdict(Exit::NotPermitted), "CRITICAL - no / answer\n");
        assert_eq!(verdict(Exit::Config), "UNKNOWN - no / answer\n");
    }
}
