//! The problems of a snapshot: one list, from one set of rules. The thresholds come from `[check]`.
//!
//! A part of the system has a file here with its rules, and a line in [`NamespaceHealth::of`].

mod brokers;
mod crons;
mod daemons;
mod groups;
mod jobs;
mod notifications;
mod problem;
mod queues;
mod servers;

pub use problem::{Problem, ProblemKind, Severity, Subject};
pub use queues::lacks_actor;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Snapshot;
use crate::config::{CheckConfig, Config, EngineKind, TypeConfig};
use crate::engine::process::program_of;
use crate::proto::target::ScriptType;

/// The part of the configuration that judges a snapshot.
#[derive(Debug, Clone)]
pub struct HealthRules {
    pub check: CheckConfig,
    /// The configured script types, each with the reason if this machine lacks its program.
    pub types: BTreeMap<ScriptType, Option<String>>,
}

impl From<&Config> for HealthRules {
    fn from(config: &Config) -> Self {
        let lacks = |of: &TypeConfig| match of.engine {
            EngineKind::Command => program_of(of).err(),
            EngineKind::Osis | EngineKind::Sal | EngineKind::HeroScript => None,
        };
        let types = config.types.iter().map(|(name, of)| (name.clone(), lacks(of)));
        Self { check: config.check.clone(), types: types.collect() }
    }
}

impl Default for HealthRules {
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

/// The state of the whole namespace: the severity of its worst problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// Nothing is wrong; notes may be there.
    Ok,
    /// A warning is the worst.
    Warning,
    /// Something is critical.
    Critical,
}

impl From<Severity> for HealthState {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Note => Self::Ok,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Critical,
        }
    }
}

/// The problems of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamespaceHealth {
    /// The state of the namespace.
    pub state: HealthState,
    /// The problems, the worst first, with notes at the end.
    pub problems: Vec<Problem>,
}

impl NamespaceHealth {
    pub fn of(snapshot: &Snapshot, rules: &HealthRules) -> Self {
        Self::of_problems(groups::joined(&Self::problems_of_parts(snapshot, rules)))
    }

    /// Judges a snapshot, each queue for itself: programs know a problem again by its subject.
    pub fn of_parts(snapshot: &Snapshot, rules: &HealthRules) -> Self {
        Self::of_problems(Self::problems_of_parts(snapshot, rules))
    }

    /// Judges a snapshot, each queue for itself. Returns its problems, the worst first.
    pub fn problems_of_parts(snapshot: &Snapshot, rules: &HealthRules) -> Vec<Problem> {
        let mut found = Found::default();
        daemons::supervisors(snapshot, rules, &mut found);
        crons::overdue(snapshot, &mut found);
        servers::all(snapshot, rules, &mut found);
        servers::emptied(snapshot, &mut found);
        servers::keys(snapshot, &mut found);
        servers::lists(snapshot, &mut found);
        servers::ids_without_hash(snapshot, &mut found);
        servers::clocks(snapshot, &mut found);
        servers::clock_steps(snapshot, &mut found);
        queues::all(snapshot, rules, &mut found);
        jobs::last_hour(snapshot, rules, &mut found);
        jobs::rising(snapshot, rules, &mut found);
        jobs::due(snapshot, &mut found);
        brokers::all(snapshot, rules, &mut found);
        notifications::all(snapshot, &mut found);
        daemons::periodic_jobs(snapshot, &mut found);
        daemons::holding(snapshot, &mut found);
        daemons::oom_kills(snapshot, &mut found);
        daemons::silent(snapshot, &mut found);
        daemons::folders_left(snapshot, &mut found);
        daemons::clones(snapshot, &mut found);
        daemons::versions(snapshot, &mut found);
        jobs::dead_letters(snapshot, &mut found);
        let mut problems = found.0;
        // The order of one severity is that above.
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
        problems
    }

    /// Judges one queue; this number of ready actors claims from it.
    pub fn of_queue(state: &crate::store::QueueState, actors: u64, rules: &HealthRules) -> Self {
        let mut found = Found::default();
        let served = queues::QueueService { actors, ..Default::default() };
        queues::one(state, Some(served), rules, &mut found);
        Self::of_problems(found.0)
    }

    fn of_problems(problems: Vec<Problem>) -> Self {
        let worst = problems.iter().map(|problem| problem.severity).max();
        Self { state: worst.map_or(HealthState::Ok, HealthState::from), problems }
    }

    /// The warnings and the critical problems, the worst first.
    pub fn wrong(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.severity > Severity::Note)
    }

    pub fn problem(&self, kind: ProblemKind) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.kind == kind)
    }
}

#[derive(Default)]
struct Found(Vec<Problem>);

impl Found {
    fn add(
        &mut self,
        (kind, severity): (ProblemKind, Severity),
        subject: Subject,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (text, remedy) = (text.into(), remedy.into());
        self.0.push(Problem { kind, severity, subject, text, remedy });
    }
}

/// Returns the severity of a number by two thresholds (0 is off), and the threshold that it reaches.
fn reached(number: u64, warning: u64, critical: u64) -> Option<(Severity, u64)> {
    let has_reached = |threshold| threshold > 0 && number >= threshold;
    match (has_reached(critical), has_reached(warning)) {
        (true, _) => Some((Severity::Critical, critical)),
        (false, true) => Some((Severity::Warning, warning)),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests;
