//! A batch that is about to be submitted, the jobs of an atomic one that wait for each other, and the shard that it goes to.

use std::collections::{HashMap, HashSet};

use super::placement::{at_random, shard_of_all};
use super::{Client, Result};
use crate::proto::graph::GraphKind;
use crate::proto::graph_plan::cycle;
use crate::proto::job::{Job, JobId};
use crate::proto::shard::ShardCount;
use crate::store::NewGraph;

/// A batch as an object, which is known by its id and name.
#[derive(Debug, Clone)]
pub struct NewBatch {
    /// The batch as it is stored, but for the caller, and the names of callbacks without one.
    pub graph: NewGraph,
    /// True if its id stays: its submitter chose it, or it tells its shard already.
    pub has_fixed_id: bool,
    /// Distinguishes it from a later batch with the same id: who knows it may add jobs.
    pub opening: String,
    /// True if it is there, and jobs are added to it.
    pub is_joined: bool,
}

impl Default for NewBatch {
    fn default() -> Self {
        let graph = NewGraph { kind: GraphKind::Batch, ..NewGraph::default() };
        let opening = JobId::random().to_string();
        Self { graph, has_fixed_id: false, opening, is_joined: false }
    }
}

impl NewBatch {
    /// A batch with an id that its submitter chose, or else a random one.
    pub fn with_id(id: Option<JobId>) -> Self {
        let mut batch = Self { has_fixed_id: id.is_some(), ..Self::default() };
        batch.graph.id = id.unwrap_or(batch.graph.id);
        batch
    }

    pub fn id(&self) -> &JobId {
        &self.graph.id
    }
}

/// Returns a graph or batch as it is stored, with its jobs. A callback without a name is named after it.
pub(super) fn stored_with(graph: &NewGraph, jobs: &[Job]) -> NewGraph {
    let mut stored = graph.clone();
    stored.caller = jobs.first().map(|job| job.spec.caller_id.clone()).unwrap_or_default();
    for (of, job) in &mut stored.callbacks {
        if job.spec.name.is_none() {
            job.spec.name = format!("{} of {}", of.as_str(), graph.id).parse().ok();
        }
    }
    stored
}

impl Client {
    /// Decides which shard a batch goes to, by the first of its jobs: if none of them tells one, by the id of the
    /// first, so that jobs which are submitted again go to the same shard. Its jobs and itself get ids that tell
    /// it.
    pub fn place_batch(&self, batch: &mut NewBatch, first: &[Job]) -> Result<()> {
        let count = self.shards.count();
        if count == ShardCount::ONE {
            return Ok(());
        }
        if !batch.has_fixed_id {
            let id = first.first().map_or(batch.id(), |job| &job.id);
            let shard = shard_of_all(first, count).unwrap_or_else(|| at_random(id, count));
            batch.graph.id = shard.id(batch.id());
            batch.has_fixed_id = true;
        }
        count.shard_of(batch.id().as_str())?;
        Ok(())
    }
}

/// Returns jobs as members of a graph or batch.
pub(super) fn members(jobs: &[Job], graph: &JobId) -> Vec<Job> {
    let mut members = jobs.to_vec();
    await_ends(&mut members);
    for job in &mut members {
        job.graph_id = Some(graph.clone());
    }
    members
}

/// Makes jobs wait only for the end, and not for the success, of those among them that may fail.
pub fn await_ends(jobs: &mut [Job]) {
    let may_fail: HashSet<JobId> =
        jobs.iter().filter(|job| job.spec.may_fail).map(|job| job.id.clone()).collect();
    for spec in jobs.iter_mut().map(|job| &mut job.spec) {
        let ends = spec.prerequisites.extract_if(.., |id| may_fail.contains(id));
        spec.after_any.extend(ends);
    }
}

/// The prerequisites within a batch, as indexes.
pub(super) struct Links {
    waits_for: Vec<Vec<usize>>,
    /// The number of prerequisites outside of the batch.
    pub(super) others: usize,
}

impl Links {
    pub(super) fn of(jobs: &[Job]) -> Self {
        let places: HashMap<&JobId, usize> =
            jobs.iter().enumerate().map(|(place, job)| (&job.id, place)).collect();
        let mut others = 0;
        let waits_for = jobs
            .iter()
            .map(|job| {
                let all = job.spec.waits_for().map(|id| places.get(id).copied());
                let (within, outside): (Vec<_>, Vec<_>) = all.partition(Option::is_some);
                others += outside.len();
                within.into_iter().flatten().collect()
            })
            .collect();
        Self { waits_for, others }
    }

    /// Returns a cycle of jobs; each waits for the next; the first comes again at the end.
    pub(super) fn cycle(&self) -> Option<Vec<usize>> {
        cycle(&self.waits_for)
    }
}
