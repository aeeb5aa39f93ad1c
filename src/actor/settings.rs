//! What an actor process is told by its configuration, and may be told anew while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{ActorConfig, ActorUnit, JobConfig};
use crate::engine::Engine;
use crate::proto::target::ScriptType;
use crate::store::Limits;

/// One state of the settings. A new one takes effect for what starts after it; jobs that run go
/// on as they began.
#[derive(Clone)]
pub struct Settings {
    /// The actors of this process, and how many jobs each runs at once. Who they are stays as it
    /// was at the start; their number of tasks may change.
    pub actors: Vec<ActorUnit>,
    /// `[job]`.
    pub job: JobConfig,
    /// `[actor]`. Heartbeat and lease stay as they were at the start.
    pub actor: ActorConfig,
    /// `[limit.NAME]`.
    pub limits: Limits,
    /// What runs each script type.
    pub engines: BTreeMap<ScriptType, Arc<dyn Engine>>,
}

impl Settings {
    /// How many jobs an actor runs at once.
    pub(super) fn tasks(&self, place: usize) -> usize {
        self.actors.get(place).map_or(0, |actor| actor.tasks)
    }
}
