//! The jobs around one job: all that it waits for and that wait for it, and so on from each of them.

use std::collections::{HashMap, HashSet};

use super::{Client, ClientError};
use crate::proto::job::JobId;
use crate::store::{JobDependents, JobSummary};

/// One job of the graph around a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphJob {
    /// The job as lists show it.
    pub job: JobSummary,
    /// The jobs that must finish before it.
    pub after: Vec<JobId>,
    /// The jobs that must end before it, in any way.
    pub after_any: Vec<JobId>,
}

impl GraphJob {
    fn new(job: JobSummary, mut of: JobDependents) -> Self {
        let after_any = of.prerequisites.split_off(of.prerequisites.len() - of.after_any);
        Self { job, after: of.prerequisites, after_any }
    }
}

/// The graph around a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobGraph {
    /// Its jobs, those near the job first.
    pub jobs: Vec<GraphJob>,
    /// True if it has more jobs than were asked for.
    pub is_cut: bool,
}

/// The maximum number of dependents of one job that are followed.
const DEPENDENTS_MAX: usize = 1_000;

impl Client {
    /// Reads the graph around a job, up to `most` jobs. Takes two round trips for each step away from the job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn graph_around(&self, id: &JobId, most: usize) -> Result<JobGraph, ClientError> {
        let mut known: HashSet<JobId> = HashSet::from([id.clone()]);
        let mut graph = JobGraph { jobs: Vec::new(), is_cut: false };
        let (store, mut step) = (self.of(id)?, vec![id.clone()]);
        while !step.is_empty() {
            let relations = store.dependents(&step).await?;
            let summaries = store.summaries(step.clone()).await?;
            let mut summaries: HashMap<JobId, JobSummary> =
                summaries.into_iter().flatten().map(|job| (job.id.clone(), job)).collect();
            let mut near: Vec<JobId> = Vec::new();
            for (id, of) in step.into_iter().zip(relations) {
                let Some(job) = summaries.remove(&id) else { continue };
                let others = of.dependents.iter().take(DEPENDENTS_MAX);
                near.extend(of.prerequisites.iter().chain(others).cloned());
                graph.is_cut |= of.dependents_more > 0;
                graph.jobs.push(GraphJob::new(job, of));
            }
            near.retain(|id| known.insert(id.clone()));
            let room = most.saturating_sub(graph.jobs.len());
            graph.is_cut |= near.len() > room;
            near.truncate(room);
            step = near;
        }
        if graph.jobs.is_empty() {
            return Err(ClientError::NoSuchJob(id.clone()));
        }
        Ok(graph)
    }

    /// Reads jobs of a graph with what they wait for, in two round trips. A job that does not exist is left out.
    pub async fn bonds_in_graph(
        &self,
        graph: &JobId,
        ids: Vec<JobId>,
    ) -> Result<Vec<GraphJob>, ClientError> {
        let store = self.of(graph)?;
        let relations = store.dependents(&ids).await?;
        let jobs = store.summaries(ids).await?.into_iter().zip(relations);
        // A later job may have the id of a deleted one.
        let jobs = jobs.filter(|(_, of)| of.graph.as_deref() == Some(graph.as_str()));
        Ok(jobs.filter_map(|(job, of)| Some(GraphJob::new(job?, of))).collect())
    }

    /// Reads jobs as lists show them, in one round trip per shard. A job that does not exist is left out.
    pub async fn job_summaries(&self, ids: Vec<JobId>) -> Result<Vec<JobSummary>, ClientError> {
        Ok(self.shards.summaries(ids).await?.into_iter().flatten().collect())
    }
}
