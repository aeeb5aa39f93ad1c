//! `batch.submit`: many jobs at once.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::batch_every::{checked, fleet};
use super::graph::{callbacks, notifications};
use super::job_files::given_files;
use super::job_types::{BatchJob, JobSettings};
use super::submitted::{StoredJob, UnservedJobs, check_number, stored_or_same, unserved};
use super::{CallContext, Result, RpcError, Scope};
use crate::client::{
    ClientError, FilesByPlace, FleetMember, MachineActorDocument, NewBatch, await_ends,
};
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
    jobs: Vec<BatchJob>,
    /// Submits all of them or none; they may wait for each other in any order.
    #[serde(default)]
    all_or_none: bool,
    /// A name for lists and searches.
    name: Option<JobName>,
    /// The id of the batch; a random UUID without one.
    id: Option<JobId>,
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
    /// each named after it. Needs the scope operate or fleet. Those that are absent get it if the job has `expires`.
    every: Option<Every>,
    /// The number of its jobs, up to 100, that start before the others, and how long these pause once the first have ended
    /// well, up to 30d, such as `1 10m`; `1 tell` pauses until `graph.tell`. No pause without it.
    pause_after: Option<PauseAfter>,
    /// More jobs follow, by further calls with `id` and `opening`; the last call is without it, and may have no job.
    #[serde(default)]
    more: bool,
    /// The `opening` of the call before: adds the jobs to its batch, which nobody else can.
    opening: Option<String>,
}

/// The jobs of a batch that were accepted, and the others.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubmittedBatch {
    /// The id of the batch, for the methods of graphs; null if it has no job.
    pub(crate) id: Option<String>,
    /// The same, by its older name.
    pub(crate) batch_id: Option<String>,
    /// The ids of the accepted jobs, repeated ones among them, in the order of the batch.
    pub(crate) ids: Vec<String>,
    /// The rejected jobs.
    pub(crate) refused: Vec<Refused>,
    /// The machines or actors, of a job for every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) every: Vec<FleetMemberDocument>,
    /// With `more`: what the next call needs to add jobs; left out if there is no batch yet, since no job was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opening: Option<String>,
    /// The number of accepted jobs that were submitted before with the same id and content.
    #[serde(default)]
    pub(crate) repeated: u64,
    /// The jobs that no live actor claims now; for callers that see all actors.
    #[serde(default)]
    pub(crate) unserved: Vec<UnservedJobs>,
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
    /// Its place in the call, from 1.
    pub(crate) line: usize,
    /// The reason.
    pub(crate) error: String,
}

async fn submit(context: CallContext, mut params: Batch) -> Result<SubmittedBatch> {
    let mut read = read(&context, &mut params).await?;
    context.check_new(&read.jobs).await?;
    let mut batch = without_jobs(&context, &mut params).await?;
    let token = params.opening.take().unwrap_or_else(|| JobId::random().to_string());
    // Nobody else has it with this name.
    batch.opening = format!("{token} {}", context.caller.name);
    let stored = if !params.all_or_none {
        each(&context, &mut batch, &mut read, params.more).await?
    } else if read.refused.is_empty() {
        Box::pin(whole(&context, &mut batch, &mut read)).await?
    } else {
        StoredBatch::default()
    };
    let StoredBatch { id, accepted, repeated } = stored;
    read.refused.sort_by_key(|refused| refused.line);
    let others: HashSet<usize> = read.refused.iter().map(|refused| refused.line - 1).collect();
    let jobs = read.places.iter().zip(&read.jobs).filter(|(place, _)| !others.contains(place));
    let jobs = jobs.map(|(_, job)| job).take(accepted.len());
    let unserved = unserved(&context, jobs).await;
    let ids: Vec<String> = accepted.iter().map(ToString::to_string).collect();
    let (batch_id, refused) = (id.map(|id| id.to_string()), read.refused);
    let every = documents(read.members, &ids, &refused);
    let opening = batch_id.is_some().then_some(token).filter(|_| params.more);
    Ok(SubmittedBatch {
        id: batch_id.clone(),
        batch_id,
        ids,
        refused,
        every,
        opening,
        repeated,
        unserved,
    })
}

#[derive(Default)]
struct StoredBatch {
    /// The id of their batch, if there is one.
    id: Option<JobId>,
    accepted: Vec<JobId>,
    /// The number of those that were submitted before.
    repeated: u64,
}

/// Submits jobs, each by itself.
async fn each(
    context: &CallContext,
    batch: &mut NewBatch,
    read: &mut JobsToSubmit,
    more: bool,
) -> Result<StoredBatch> {
    let mut stored = StoredBatch::default();
    if read.jobs.is_empty() && !batch.is_joined {
        return Ok(stored);
    }
    let results = context.client.submit_all_of(batch, &read.jobs, &read.files).await?;
    let (mut before, mut has_members) = (HashSet::new(), false);
    for ((at, job), result) in read.jobs.iter().enumerate().zip(results) {
        let is_other = !before.insert(&job.id) || read.files.contains_key(&at);
        let result = stored_or_same(context, job.clone(), is_other, result).await;
        match result.and_then(|known| of_other_batch(known, batch)) {
            Ok(known) => {
                stored.repeated += u64::from(known.before.is_some());
                has_members |= known.before.is_none();
                stored.accepted.push(known.id);
            }
            Err(error) => {
                read.refused.push(Refused { line: read.places[at] + 1, error: error.message });
            }
        }
    }
    let is_empty =
        !more && !has_members && context.client.graphs().drop_empty_batch(batch.id()).await?;
    if !more && !is_empty {
        context.client.close_batch(batch).await?;
    }
    stored.id = (!is_empty).then(|| batch.id().clone());
    Ok(stored)
}

/// Refuses a job that an earlier job of the same batch is.
fn of_other_batch(stored: StoredJob, batch: &NewBatch) -> Result<StoredJob> {
    match &stored.before {
        Some(known) if known.graph_id.as_ref() == Some(batch.id()) => {
            Err(ClientError::IdTaken(stored.id).into())
        }
        _ => Ok(stored),
    }
}

/// Submits jobs, all or none.
async fn whole(
    context: &CallContext,
    batch: &mut NewBatch,
    read: &mut JobsToSubmit,
) -> Result<StoredBatch> {
    match context.client.submit_all_or_none_of(batch, &read.jobs, &read.files).await {
        Ok(accepted) => {
            Ok(StoredBatch { id: Some(batch.id().clone()), accepted, ..StoredBatch::default() })
        }
        Err(ClientError::Refused { place, error, .. }) => {
            if matches!(*error, ClientError::IdTaken(_))
                && let Some(known) = Box::pin(same(context, read)).await
            {
                return Ok(known);
            }
            let (line, error) = (read.places.get(place), RpcError::from(*error).message);
            // A callback comes after the jobs.
            let line = line.map_or(place, |place| *place) + 1;
            read.refused.push(Refused { line, error });
            Ok(StoredBatch::default())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the jobs that have the ids, and their batch, if all were submitted before as they are.
async fn same(context: &CallContext, read: &JobsToSubmit) -> Option<StoredBatch> {
    let mut params = read.jobs.clone();
    await_ends(&mut params);
    let (mut accepted, mut batches) = (Vec::new(), HashSet::new());
    for (at, job) in params.into_iter().enumerate() {
        let taken = Err(ClientError::IdTaken(job.id.clone()));
        let has_files = read.files.contains_key(&at);
        let known = stored_or_same(context, job, has_files, taken).await.ok()?;
        accepted.push(known.id);
        batches.insert(known.before.and_then(|known| known.graph_id));
    }
    let mut batches = batches.into_iter();
    let id = batches.next().flatten().filter(|_| batches.next().is_none());
    Some(StoredBatch { id, repeated: accepted.len() as u64, accepted })
}

/// The jobs of a call that are valid, with their places in it, and the files of some by their places among these; the other
/// jobs; and the machines or actors that get them.
#[derive(Default)]
struct JobsToSubmit {
    places: Vec<usize>,
    jobs: Vec<Job>,
    files: FilesByPlace,
    refused: Vec<Refused>,
    members: Vec<FleetMember>,
}

async fn read(context: &CallContext, params: &mut Batch) -> Result<JobsToSubmit> {
    let most = if params.all_or_none { Store::WHOLE_MAX } else { JOBS_MAX };
    let is_joined = params.opening.is_some();
    if !(params.jobs.is_empty() && is_joined) {
        check_number("batch", params.jobs.len(), most)?;
    }
    if (params.more || is_joined) && (params.all_or_none || params.every.is_some()) {
        let message = "a batch of several calls is neither all_or_none nor for every machine";
        return Err(RpcError::wrong("more", message));
    }
    if is_joined && params.id.is_none() {
        return Err(RpcError::wrong("id", "the `id` of the batch is missing beside `opening`"));
    }
    let mut read = JobsToSubmit::default();
    if let Some(every) = params.every {
        read.members = fleet(context, &params.jobs, every).await?;
        read.jobs = read.members.iter().filter_map(|of| of.job.clone()).collect();
        read.places = (0..read.jobs.len()).collect();
        return Ok(read);
    }
    for (place, of) in params.jobs.drain(..).enumerate() {
        let BatchJob { settings, inputs, stdin } = of;
        let files = |job: &Job| given_files(context, (place, job), inputs, stdin);
        let job = checked(context, &settings).await;
        match job.and_then(|job| Ok((files(&job)?, job))) {
            Ok((files, job)) => {
                if !files.is_empty() {
                    read.files.insert(read.jobs.len(), files);
                }
                read.places.push(place);
                read.jobs.push(job);
            }
            Err(error) => read.refused.push(Refused { line: place + 1, error: error.message }),
        }
    }
    Ok(read)
}

async fn without_jobs(context: &CallContext, params: &mut Batch) -> Result<NewBatch> {
    let Batch { at_a_time, stop_after, pause_after, .. } = *params;
    let asked = [params.on_success.take(), params.on_failure.take(), params.on_end.take()];
    let mut batch = NewBatch::with_id(params.id.take());
    batch.is_joined = params.opening.is_some();
    batch.graph.name = params.name.take();
    batch.graph.callbacks = callbacks(context, asked).await?;
    batch.graph.notify = notifications(&params.notify)?;
    batch.graph.window = GraphWindow { at_a_time, stop_after, pause_after };
    batch.graph.every = params.every;
    Ok(batch)
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
