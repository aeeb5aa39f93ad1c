//! `batch.submit`: many jobs at once.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::{RpcError, code};
use super::graph::{callbacks, notifications};
use super::job_types::JobSettings;
use super::params::Spelled;
use super::repeats::stored_or_same;
use crate::client::{ClientError, FleetMember, MachineActorDocument, NewBatch};
use crate::proto::every::Every;
use crate::proto::job::{Job, JobId, JobName};
use crate::proto::message::ActorState;
use crate::proto::window::{GraphWindow, PauseAfter, StopAfter};
use crate::store::Store;

/// The maximum number of jobs of one batch that is not atomic.
const JOBS_MAX: usize = 10_000;

methods! {
    /// Submits many jobs: each is accepted or rejected by itself, or all or none.
    "batch.submit", Scope::Submit => submit;
}

/// The jobs of a batch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Batch {
    /// The jobs, up to 10 000.
    jobs: Vec<JobSettings>,
    /// Submits all of them or none; they may wait for each other in any order.
    #[serde(default)]
    all_or_none: bool,
    /// A name for lists and searches.
    name: Option<Spelled<JobName>>,
    /// The id of the batch; a random UUID without one.
    id: Option<Spelled<JobId>>,
    /// The job that starts once all jobs have finished. It gets the id, name, state and counts of the batch
    /// as variables, `HERO_GRAPH_ID` and so on.
    on_success: Option<JobSettings>,
    /// The job that starts once all jobs have ended, and not all finished.
    on_failure: Option<JobSettings>,
    /// The job that starts once all jobs have ended.
    on_end: Option<JobSettings>,
    /// The notifications that tell of its end, by one message with the numbers of its jobs.
    #[serde(default)]
    notify: Vec<String>,
    /// The number of its jobs that run at once; no bound without it.
    at_a_time: Option<u32>,
    /// The failures that stop its jobs that have not started: a number, or a share of all jobs such as `5%`; no bound
    /// without it.
    stop_after: Option<StopAfter>,
    /// Submits the only job of the batch once for every machine, or every actor, of its type that matches its `where`,
    /// each named after it. Needs the scope operate. Those that are absent get it if the job has `expires`.
    every: Option<Every>,
    /// The number of its jobs, up to 100, that start before the others, and how long these pause once the first have ended
    /// well, up to 30d, such as `1 10m`; `1 tell` pauses until `graph.tell`. No pause without it.
    pause_after: Option<PauseAfter>,
}

/// The jobs of a batch that were accepted, and the others.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubmittedBatch {
    /// The id of the batch, for the methods of graphs; null if it has no job.
    pub(crate) id: Option<String>,
    /// The same, by its older name.
    batch_id: Option<String>,
    /// The ids of the accepted jobs, repeated ones among them, in the order of the batch.
    ids: Vec<String>,
    /// The rejected jobs.
    pub(crate) refused: Vec<Refused>,
    /// The machines or actors, of a job for every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) every: Vec<FleetMemberDocument>,
}

/// A machine or actor of a job for every one.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct FleetMemberDocument {
    /// The name of the machine.
    pub(crate) machine: String,
    /// Its host name.
    pub(crate) host: String,
    /// The actor, of a job for every actor.
    pub(crate) actor: Option<String>,
    /// Its job; null if it is absent and the job has no `expires`, or was rejected.
    pub(crate) id: Option<String>,
    /// When an actor of the machine was seen last: RFC 3339, UTC.
    pub(crate) seen_at: String,
    /// True if it is live.
    pub(crate) live: bool,
    /// True if it is live and drains: its job waits until it is resumed.
    #[serde(default)]
    pub(crate) drains: bool,
}

/// A rejected job of a batch.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Refused {
    /// Its place in the batch, from 1.
    line: usize,
    /// The reason.
    pub(crate) error: String,
}

async fn submit(context: CallContext, mut given: Batch) -> Result<SubmittedBatch, RpcError> {
    let JobsToSubmit { jobs, mut refused, members } = read(&context, &given).await?;
    let (places, jobs): (Vec<usize>, Vec<Job>) = jobs.into_iter().unzip();
    context.check_new(&jobs).await?;
    let mut batch = without_jobs(&context, &mut given).await?;
    let (mut ids, mut is_stored) = (Vec::new(), false);
    if !given.all_or_none {
        let results = match jobs.as_slice() {
            [] => Vec::new(),
            jobs => context.client.submit_all_of(&mut batch, jobs, true).await?,
        };
        let mut before = HashSet::new();
        for ((place, result), job) in places.into_iter().zip(results).zip(&jobs) {
            let is_second = !before.insert(&job.id);
            match stored_or_same(&context, job.clone(), is_second, result).await {
                Ok(stored) => {
                    is_stored |= stored.is_new || stored.id != job.id;
                    ids.push(stored.id.to_string());
                }
                Err(error) => refused.push(Refused { line: place + 1, error: error.message }),
            }
        }
        refused.sort_by_key(|refused| refused.line);
        if is_stored {
            context.client.close_batch(&batch).await?;
        }
    } else if refused.is_empty() {
        match context.client.submit_all_or_none_of(&mut batch, &jobs).await {
            Ok(all) => {
                is_stored = true;
                ids.extend(all.iter().map(ToString::to_string));
            }
            Err(ClientError::Refused { error, .. })
                if matches!(*error, ClientError::IdTaken(_)) && are_same(&context, &jobs).await =>
            {
                ids.extend(jobs.iter().map(|job| job.id.to_string()));
            }
            Err(ClientError::Refused { place, error, .. }) => {
                let error = RpcError::from(*error).message;
                refused.push(Refused { line: place + 1, error });
            }
            Err(error) => return Err(error.into()),
        }
    }
    if !is_stored && !given.all_or_none && !jobs.is_empty() {
        context.client.drop_empty_batch(&batch.id).await?;
    }
    let batch_id = is_stored.then(|| batch.id.to_string());
    let every = documents(members, &ids, &refused);
    Ok(SubmittedBatch { id: batch_id.clone(), batch_id, ids, refused, every })
}

/// The jobs of a batch that are valid, each with its place; the others; and the machines or actors that get them.
struct JobsToSubmit {
    jobs: Vec<(usize, Job)>,
    refused: Vec<Refused>,
    members: Vec<FleetMember>,
}

async fn read(context: &CallContext, given: &Batch) -> Result<JobsToSubmit, RpcError> {
    let most = if given.all_or_none { Store::WHOLE_MAX } else { JOBS_MAX };
    if given.jobs.len() > most {
        let error = ClientError::TooMany { jobs: given.jobs.len(), most };
        return Err(RpcError::from(error).with("field", "jobs"));
    }
    if given.jobs.is_empty() {
        let message = "the batch has no job: give at least one in `jobs`";
        return Err(RpcError::new(code::INVALID_PARAMS, message).with("field", "jobs"));
    }
    if let Some(every) = given.every {
        let members = fleet(context, &given.jobs, every).await?;
        let jobs = members.iter().filter_map(|of| of.job.clone()).enumerate().collect();
        return Ok(JobsToSubmit { jobs, refused: Vec::new(), members });
    }
    let (mut jobs, mut refused) = (Vec::new(), Vec::new());
    for (place, settings) in given.jobs.iter().enumerate() {
        match checked(context, settings).await {
            Ok(job) => jobs.push((place, job)),
            Err(error) => refused.push(Refused { line: place + 1, error: error.message }),
        }
    }
    Ok(JobsToSubmit { jobs, refused, members: Vec::new() })
}

/// Returns the batch without its jobs.
async fn without_jobs(context: &CallContext, given: &mut Batch) -> Result<NewBatch, RpcError> {
    let Batch { at_a_time, stop_after, pause_after, .. } = *given;
    let asked = [given.on_success.take(), given.on_failure.take(), given.on_end.take()];
    Ok(NewBatch {
        name: given.name.take().map(|Spelled(name)| name),
        callbacks: callbacks(context, asked).await?,
        notify: notifications(&given.notify)?,
        window: GraphWindow { at_a_time, stop_after, pause_after },
        ..NewBatch::with_id(given.id.take().map(|Spelled(id)| id))
    })
}

/// Returns whether all jobs were submitted before, as they are.
async fn are_same(context: &CallContext, jobs: &[Job]) -> bool {
    for job in jobs {
        let taken = Err(ClientError::IdTaken(job.id.clone()));
        if stored_or_same(context, job.clone(), false, taken).await.is_err() {
            return false;
        }
    }
    true
}

/// Returns the copies of the only job of a batch for every machine or actor.
async fn fleet(
    context: &CallContext,
    jobs: &[JobSettings],
    every: Every,
) -> Result<Vec<FleetMember>, RpcError> {
    if !context.operates() {
        let what = "submit a job for every machine: this needs the scope operate";
        return Err(context.may_not(what));
    }
    let [only] = jobs else {
        let message = "a batch for every machine has one job, which each of them gets";
        return Err(RpcError::new(code::INVALID_PARAMS, message).with("field", "jobs"));
    };
    let job = checked(context, only).await?;
    let members = context.client.fleet(&job, every).await?;
    for job in members.iter().filter_map(|of| of.job.as_ref()) {
        context.client.check(job)?;
    }
    Ok(members)
}

/// Returns the machines or actors of a batch; those with a copy that was not rejected have the ids in their order.
fn documents(
    members: Vec<FleetMember>,
    ids: &[String],
    refused: &[Refused],
) -> Vec<FleetMemberDocument> {
    let (mut ids, mut line) = (ids.iter(), 0);
    let documents = members.into_iter().map(|FleetMember { machine, actor, job }| {
        line += usize::from(job.is_some());
        let is_stored = job.is_some() && refused.iter().all(|of| of.line != line);
        let own = |of: &&MachineActorDocument| {
            of.live && actor.as_ref().is_none_or(|actor| of.actor == actor.to_string())
        };
        let mut states = machine.actors.iter().filter(own).map(|of| of.state).peekable();
        let is_live = states.peek().is_some();
        FleetMemberDocument {
            live: is_live,
            drains: is_live && states.all(|state| state == Some(ActorState::Draining)),
            machine: machine.machine,
            host: machine.host,
            actor: actor.map(|actor| actor.to_string()),
            id: if is_stored { ids.next().cloned() } else { None },
            seen_at: machine.seen_at,
        }
    });
    documents.collect()
}

async fn checked(context: &CallContext, settings: &JobSettings) -> Result<Job, RpcError> {
    let job = settings.job(context).await?;
    context.client.check(&job)?;
    context.has_type(&job)?;
    Ok(job)
}
