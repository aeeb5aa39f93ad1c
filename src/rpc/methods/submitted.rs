//! The results of submissions. One that is repeated with the id and the content of the one before, as after a lost answer, returns
//! that job. New jobs that no live actor claims are named.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallContext, Result, RpcError};
use crate::client::{AwaitedJob, ClientError, is_repeated};
use crate::proto::job::{Job, JobId};
use crate::proto::queue::Queue;
use crate::proto::selector::Selector;
use crate::proto::target::ScriptType;
use crate::store::{PresenceOf, mismatch};

pub(super) struct StoredJob {
    pub(super) id: JobId,
    pub(super) is_new: bool,
    /// The job that was submitted before with its id and content.
    pub(super) before: Option<Box<Job>>,
}

/// The id of a submitted job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubmittedId {
    /// The id of the job.
    pub(crate) id: String,
    /// False if no job was stored: the id names the job that holds its unique key, or one that was submitted before
    /// with this id and the same content.
    pub(crate) created: bool,
}

impl From<StoredJob> for SubmittedId {
    fn from(stored: StoredJob) -> Self {
        Self { id: stored.id.to_string(), created: stored.is_new }
    }
}

/// Refuses a graph or batch without jobs, or with too many.
pub(super) fn check_number(noun: &str, jobs: usize, most: usize) -> Result<()> {
    if jobs > most {
        return Err(RpcError::from(ClientError::TooMany { jobs, most }).with("field", "jobs"));
    }
    if jobs == 0 {
        let message = format!("the {noun} has no job: give at least one in `jobs`");
        return Err(RpcError::wrong("jobs", message));
    }
    Ok(())
}

/// Returns a submitted job, or the job of its id if that has the same content and the caller may
/// see it. `is_other` is set if it cannot be the same: files were given, which are not compared, or an earlier job of the
/// same submission has the id.
pub(super) async fn stored_or_same(
    context: &CallContext,
    params: Job,
    is_other: bool,
    stored: Result<JobId, ClientError>,
) -> Result<StoredJob> {
    let id = match stored {
        Err(ClientError::IdTaken(id)) if !is_other => id,
        other => {
            let id = other?;
            return Ok(StoredJob { is_new: id == params.id, id, before: None });
        }
    };
    match context.visible(&id).await {
        // A token that submits alone learns nothing of a job of another, whose name it gives.
        Ok(known)
            if context.reads_of(Some(&known.spec.caller_id)) && is_repeated(&known, params) =>
        {
            Ok(StoredJob { id, is_new: false, before: Some(Box::new(known)) })
        }
        _ => Err(ClientError::IdTaken(id).into()),
    }
}

/// The same for a job whose end the caller waits for. Returns whether it is new, too.
pub(super) async fn awaited_or_same(
    context: &CallContext,
    params: Job,
    has_files: bool,
    stored: Result<AwaitedJob, ClientError>,
) -> Result<(AwaitedJob, bool)> {
    match stored {
        Ok(job) => {
            let is_new = job.id == params.id;
            Ok((job, is_new))
        }
        Err(error) => {
            let known = stored_or_same(context, params, has_files, Err(error)).await?;
            Ok((known.id.into(), false))
        }
    }
}

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
    if context.hides_jobs() || !context.config.supervisor.served_legacy_queues().is_empty() {
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
            let Ok(actors) = context.client.actors().list(Some(script_type)).await else { break };
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
