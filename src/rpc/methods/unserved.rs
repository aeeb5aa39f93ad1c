//! New jobs that no live actor claims, as the results of submissions name them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::method::CallContext;
use crate::proto::job::Job;
use crate::proto::queue::Queue;
use crate::proto::selector::Selector;
use crate::proto::target::ScriptType;
use crate::store::{PresenceOf, mismatch};

/// The targets that are checked.
const TARGETS_MAX: usize = 100;

/// Jobs of one target that no live actor claims.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct UnservedJobs {
    /// The number of these jobs.
    pub(crate) jobs: u64,
    /// The reason, and where to look.
    pub(crate) reason: String,
}

/// Returns the jobs among these that no live actor claims: to a caller that sees all actors, unless older programs take
/// jobs, whose presence is unknown. Without an answer it returns nothing: the jobs are accepted.
pub(super) async fn unserved(
    context: &CallContext,
    jobs: impl Iterator<Item = &Job>,
) -> Vec<UnservedJobs> {
    if !context.finds_all() || !context.config.supervisor.served_legacy_queues().is_empty() {
        return Vec::new();
    }
    let mut targets: BTreeMap<String, (Queue, Option<Selector>, u64)> = BTreeMap::new();
    for job in jobs {
        let Some(queue) = job.spec.queue() else { continue };
        let name = queue.target.to_string();
        if targets.len() < TARGETS_MAX || targets.contains_key(&name) {
            targets.entry(name).or_insert_with(|| (queue, job.spec.r#where.clone(), 0)).2 += 1;
        }
    }
    let mut live: BTreeMap<ScriptType, Vec<PresenceOf>> = BTreeMap::new();
    let mut unserved = Vec::new();
    for (target, (queue, selector, jobs)) in targets {
        let script_type = queue.target.script_type();
        if !live.contains_key(script_type) {
            let Ok(actors) = context.client.list_actors(Some(script_type)).await else { break };
            live.insert(script_type.clone(), actors);
        }
        let actors = live.get(script_type).map(Vec::as_slice).unwrap_or_default();
        if actors.iter().any(|of| of.claims_from(&queue.target, selector.as_ref())) {
            continue;
        }
        let reason = match selector {
            Some(selector) => format!(
                "no live actor matches {selector}: {}: hero actor list --json",
                mismatch(&selector, actors)
            ),
            None => format!("no live actor claims jobs of {target}: hero actor list"),
        };
        unserved.push(UnservedJobs { jobs, reason });
    }
    unserved
}
