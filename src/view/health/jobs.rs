//! Jobs: failures and dead letters of the last hour, failures that rise, due jobs that nobody dispatches.

use std::time::Duration;

use super::{Found, HealthRules, ProblemKind, Severity, Subject, reached};
use crate::proto::text::counted;
use crate::store::LastHour;
use crate::view::{Minute, Snapshot, start_of};

/// The latest minutes: their failures are compared with the rest of the hour.
const LATEST_MINUTES: usize = 10;
/// Fewer failures in these minutes are no trend.
const FAILURES_LEAST: u64 = 10;

/// The failures and the dead letters of the last hour.
pub(super) fn last_hour(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let sum = |of: fn(&LastHour) -> u64| -> u64 {
        snapshot.types.iter().filter_map(|of| of.hour).map(|hour| of(&hour)).sum()
    };
    let check = &rules.check;
    let mut add = |kind, number, (warning, critical), subject, what: &str, remedy| {
        let Some((severity, from)) = reached(number, warning, critical) else { return };
        let ended = counted(number, what, &format!("{what}s"));
        let text = format!("{ended} in the last hour (threshold {from})");
        found.add((kind, severity), subject, text, remedy);
    };
    add(
        ProblemKind::JobsFailed,
        sum(|hour| hour.failed),
        (check.failed_warning, check.failed_critical),
        Subject::Jobs,
        "failed job",
        "see why: hero job errors",
    );
    add(
        ProblemKind::DeadLetters,
        snapshot.dead_in_last_hour(),
        (check.dead_warning, check.dead_critical),
        Subject::DeadLetters,
        "dead letter",
        "see why: hero dead list; then: hero dead retry ID, or: hero dead delete ID",
    );
}

/// The shortest time that the latest minutes are compared with.
const BEFORE_MINUTES_LEAST: u64 = 5;

/// Failures whose share of the ended jobs has risen.
pub(super) fn rising(snapshot: &Snapshot, rules: &HealthRules, found: &mut Found) {
    let (minutes, times) = (&snapshot.minutes, rules.check.failures_rise);
    let (before, latest) = minutes.split_at(minutes.len().saturating_sub(LATEST_MINUTES));
    let of = |minutes: &[Minute]| {
        let failed: u64 = minutes.iter().map(|of| of.failed).sum();
        (failed, failed + minutes.iter().map(|of| of.finished).sum::<u64>())
    };
    let ((failed_before, ended_before), (failed, ended)) = (of(before), of(latest));
    // The shares as products: failed / ended >= times * failed before / ended before.
    let has_risen = failed.saturating_mul(ended_before)
        >= times.saturating_mul(failed_before).saturating_mul(ended);
    let has_before = ended_before > 0 && span(before) >= BEFORE_MINUTES_LEAST;
    if times == 0 || failed < FAILURES_LEAST || !has_before || !has_risen {
        return;
    }
    let text = format!(
        "failures rise: {} of the jobs that ended in the last {} min failed, {} in the {} min before",
        percent(failed, ended),
        span(latest),
        percent(failed_before, ended_before),
        span(before),
    );
    let of = (ProblemKind::FailuresRise, Severity::Warning);
    found.add(of, Subject::Jobs, text, "see why: hero job errors --since 15m");
}

/// The length of minutes, rounded: a sample comes some milliseconds early or late.
fn span(minutes: &[Minute]) -> u64 {
    (minutes.iter().map(|of| of.length).sum::<Duration>().as_secs() + 30) / 60
}

/// A share as `1.1 %`, with no decimal from 10 % on.
fn percent(part: u64, whole: u64) -> String {
    let per_mille = part.saturating_mul(1000).checked_div(whole).unwrap_or_default();
    match per_mille {
        0..100 => format!("{}.{} %", per_mille / 10, per_mille % 10),
        _ => format!("{} %", per_mille / 10),
    }
}

/// Scheduled jobs whose time has come, without a supervisor.
pub(super) fn due(snapshot: &Snapshot, found: &mut Found) {
    let due: u64 = snapshot.types.iter().map(|of| of.due).sum();
    if due > 0 && snapshot.supervisors.is_empty() && !snapshot.refuses_writes() {
        let jobs = counted(due, "scheduled job is", "scheduled jobs are");
        found.add(
            (ProblemKind::JobsDue, Severity::Critical),
            Subject::Jobs,
            format!("{jobs} due and not dispatched"),
            format!("a supervisor dispatches them: {}", start_of("supervisor")),
        );
    }
}

/// The dead letters that are kept.
pub(super) fn dead_letters(snapshot: &Snapshot, found: &mut Found) {
    let dead: u64 = snapshot.types.iter().map(|of| of.dead).sum();
    if dead > 0 {
        found.add(
            (ProblemKind::DeadLettersKept, Severity::Note),
            Subject::DeadLetters,
            format!("{} kept", counted(dead, "dead letter is", "dead letters are")),
            "see them: hero dead list",
        );
    }
}
