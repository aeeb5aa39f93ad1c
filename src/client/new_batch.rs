//! A batch that is about to be submitted, the jobs of an atomic one that wait for each other, and the shard that it goes to.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::placement::{at_random, shard_of_all};
use super::{Client, Result};
use crate::proto::cron::CronName;
use crate::proto::every::Every;
use crate::proto::graph::{GraphCallback, GraphKind};
use crate::proto::graph_plan::cycle;
use crate::proto::job::{Job, JobId, JobName, NotifyName};
use crate::proto::shard::ShardCount;
use crate::proto::window::GraphWindow;
use crate::store::NewGraph;

/// A batch as an object, which is known by its id and name.
#[derive(Debug, Clone)]
pub struct NewBatch {
    pub id: JobId,
    /// True if its id stays: its submitter chose it, or it tells its shard already.
    pub has_fixed_id: bool,
    /// Its name; several may have the same.
    pub name: Option<JobName>,
    /// The jobs that start at its end, with the settings of a graph's.
    pub callbacks: BTreeMap<GraphCallback, Job>,
    /// The notifications that tell of its end.
    pub notify: Vec<NotifyName>,
    /// The number of its jobs that run at once, and the failures after which no other starts.
    pub window: GraphWindow,
    /// The periodic job that it is a run of.
    pub cron: Option<CronName>,
    /// The receivers of its jobs, if they are copies of one job.
    pub every: Option<Every>,
    /// Distinguishes it from a later batch with the same id: who knows it may add jobs.
    pub opening: String,
    /// True if it is there, and jobs are added to it.
    pub is_joined: bool,
}

impl Default for NewBatch {
    fn default() -> Self {
        let (id, has_fixed_id) = (JobId::random(), false);
        let opening = JobId::random().to_string();
        let (callbacks, notify, window) = (BTreeMap::new(), Vec::new(), GraphWindow::default());
        let (name, cron, every, is_joined) = (None, None, None, false);
        Self { id, has_fixed_id, name, callbacks, notify, window, cron, every, opening, is_joined }
    }
}

impl NewBatch {
    /// A batch with an id that its submitter chose, or else a random one.
    pub fn with_id(id: Option<JobId>) -> Self {
        let has_fixed_id = id.is_some();
        Self { id: id.unwrap_or_else(JobId::random), has_fixed_id, ..Self::default() }
    }

    /// Returns whether something waits until it has all its jobs.
    pub(super) fn needs_close(&self) -> bool {
        let has_end = !self.callbacks.is_empty() || !self.notify.is_empty();
        self.is_joined || has_end || self.window.has_share()
    }

    /// Returns it as it is stored, with its jobs. A callback without a name is named after it.
    pub(super) fn stored_with(&self, kind: GraphKind, jobs: &[Job]) -> NewGraph {
        let named = |(of, job): (&GraphCallback, &Job)| {
            let mut job = job.clone();
            if job.spec.name.is_none() {
                job.spec.name = format!("{} of {}", of.as_str(), self.id).parse().ok();
            }
            (*of, job)
        };
        NewGraph {
            id: self.id.clone(),
            kind,
            name: self.name.clone(),
            caller: jobs.first().map(|job| job.spec.caller_id.clone()).unwrap_or_default(),
            callbacks: self.callbacks.iter().map(named).collect(),
            notify: self.notify.clone(),
            window: self.window,
            cron: self.cron.clone(),
            every: self.every,
        }
    }
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
            let id = first.first().map_or(&batch.id, |job| &job.id);
            batch.id =
                shard_of_all(first, count).unwrap_or_else(|| at_random(id, count)).id(&batch.id);
            batch.has_fixed_id = true;
        }
        count.shard_of(batch.id.as_str())?;
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
