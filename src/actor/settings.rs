//! The settings of an actor process, which a reload may replace while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::config::{ActorConfig, ActorUnit, DeadLetters, JobConfig, SecretsConfig};
use crate::engine::Engine;
use crate::proto::job::{RequiredKeys, SubmitRule};
use crate::proto::labels::Labels;
use crate::proto::target::ScriptType;
use crate::store::ClaimLimits;

/// The settings of an actor process. New ones take effect for jobs that start after them.
#[derive(Clone)]
pub struct ActorSettings {
    /// The actors of this process, and how many jobs each runs at once. Their names are fixed at
    /// the start; their number of tasks may change.
    pub actors: Vec<ActorUnit>,
    /// The labels of each, those that are not configured too: [`all_labels`](super::all_labels).
    pub labels: Vec<Labels>,
    pub job: JobConfig,
    /// `[actor]`. Heartbeat and lease are fixed at the start.
    pub actor: ActorConfig,
    /// The names of the variables of jobs whose values no log shows, as patterns.
    pub redact: Vec<String>,
    pub secrets: SecretsConfig,
    /// `[limit.NAME]`.
    pub limits: ClaimLimits,
    /// The script types whose failed jobs are dead letters without retries too.
    pub all_dead: BTreeSet<ScriptType>,
    /// The jobs that the scripts of each type may submit.
    pub may_submit: BTreeMap<ScriptType, Vec<SubmitRule>>,
    /// The keys of which one must sign each job of a script type; a type without them needs no signature.
    pub required_keys: BTreeMap<ScriptType, RequiredKeys>,
    pub engines: BTreeMap<ScriptType, Arc<dyn Engine>>,
    /// The digest of the configuration that they are from.
    pub digest: String,
    /// When they were read.
    pub read_at: Timestamp,
}

impl ActorSettings {
    /// Returns the failed jobs of a type that become dead letters.
    pub(super) fn dead_letters(&self, script_type: &ScriptType) -> DeadLetters {
        let is_all = self.all_dead.contains(script_type);
        if is_all { DeadLetters::All } else { DeadLetters::Retried }
    }

    /// Returns the labels of an actor, those that are not configured too.
    pub(super) fn labels(&self, actor: usize) -> &Labels {
        static NONE: Labels = Labels::new();
        self.labels.get(actor).unwrap_or(&NONE)
    }

    /// Returns how many jobs an actor runs at once.
    pub(super) fn tasks(&self, actor: usize) -> usize {
        self.actors.get(actor).map_or(0, |actor| actor.tasks)
    }
}
