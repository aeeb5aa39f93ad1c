//! Periodic jobs that do not succeed.

use super::{Found, ProblemKind, Severity, Subject};
use crate::proto::text::escape;
use crate::proto::units::brief;
use crate::store::{CronEnds, FiredCron};
use crate::view::Snapshot;

/// Periodic jobs without a success for twice their interval, and those that could not be submitted.
pub(super) fn overdue(snapshot: &Snapshot, found: &mut Found) {
    for of in &snapshot.periodic_jobs {
        let FiredCron { name, ends, .. } = of;
        let what = if let Some((_, why)) = ends.refused() {
            let why = escape(why.lines().next().unwrap_or_default());
            format!("could not be submitted when it was due: {why}")
        } else if ends.overdue.is_none_or(|at| at >= snapshot.at) {
            continue;
        } else if let Some((at, _)) = &ends.succeeded {
            let ago = brief(snapshot.at.duration_since(*at).unsigned_abs());
            format!("has not succeeded for {ago}, twice its interval{}", last_failure(ends))
        } else {
            format!("has not succeeded, though it was due twice{}", last_failure(ends))
        };
        found.add(
            (ProblemKind::CronOverdue, Severity::Warning),
            Subject::PeriodicJob(name.clone()),
            format!("periodic job {name} {what}"),
            format!("see its firings, and the log of its last job: hero cron show {name}"),
        );
    }
}

/// The failure after the last success.
fn last_failure(ends: &CronEnds) -> String {
    let last = ends.succeeded.as_ref().map(|(at, _)| *at);
    match &ends.failed {
        Some((at, id, why)) if Some(*at) > last => {
            let why = escape(why.lines().next().unwrap_or_default());
            format!("; job {} failed: {why}", escape(id))
        }
        _ => String::new(),
    }
}
