//! Graphs and batches as objects: lists, shows, awaits, retries, stops and deletes them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patience::WaitBound;
use super::{Client, ClientError};
use crate::proto::graph::{GraphCounts, GraphInfo, GraphJobOutcome, GraphKind, GraphState};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::counted;
use crate::proto::window::{GraphWindow, StopAfter};
use crate::store::{DeleteOutcome, GraphMember, GraphPage, JobSummary, StopOutcome, Store};

/// A graph or batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kind of its submission.
    pub kind: GraphKind,
    /// Its state: `running` until all jobs have ended, then `finished`, `failed` if a job failed, else
    /// `cancelled` if a job was stopped.
    pub state: GraphState,
    /// The number of its jobs.
    pub jobs: u64,
    /// Jobs that finished, or failed and may fail.
    pub finished: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were stopped, or deleted before their end.
    pub cancelled: u64,
    /// Jobs that have not ended.
    pub waiting: u64,
    /// The name of its submitter, from its first job.
    pub caller_id: String,
    /// The time of its submission, in RFC 3339.
    pub created_at: String,
    /// The time when its last job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The callbacks that were started at its last end: `on_success`, `on_failure`, `on_end`, each with the
    /// id of its job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callbacks: BTreeMap<String, String>,
    /// The jobs of these callbacks with their states, where one graph or batch is asked for; without a job that was
    /// deleted or has expired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callback_jobs: Vec<CallbackJob>,
    /// The number of its jobs that run at once, if it has a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<u32>,
    /// The failures after which its other jobs are stopped: a number, or a share of all jobs such as `5%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<StopAfter>,
    /// The error of its jobs that did not start, once it was stopped after failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// The job of a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackJob {
    /// The callback: `on_success`, `on_failure` or `on_end`.
    pub callback: String,
    /// The id of the job.
    pub id: String,
    /// Its state.
    pub status: String,
}

impl From<&GraphInfo> for GraphDocument {
    fn from(graph: &GraphInfo) -> Self {
        let counts = &graph.counts;
        Self {
            id: graph.id.to_string(),
            name: graph.name.clone(),
            kind: graph.kind,
            state: counts.state(),
            jobs: counts.jobs,
            finished: counts.finished,
            failed: counts.failed,
            cancelled: counts.cancelled,
            waiting: counts.waiting(),
            caller_id: graph.caller.clone(),
            created_at: graph.created_at.clone(),
            ended_at: graph.ended_at.clone(),
            callbacks: graph
                .callbacks
                .iter()
                .map(|(name, id)| ((*name).to_owned(), id.clone()))
                .collect(),
            callback_jobs: Vec::new(),
            at_a_time: graph.window.at_a_time,
            stop_after: graph.window.stop_after,
            stopped: graph.stopped.clone(),
        }
    }
}

/// A job of a graph or batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOfGraph {
    /// Its id, outcome and place.
    pub member: GraphMember,
    /// The job as lists show it; `None` if it was deleted or has expired.
    pub job: Option<JobSummary>,
}

impl GraphDocument {
    /// Returns its window, if it has one.
    pub fn window(&self) -> Option<GraphWindow> {
        let window = GraphWindow { at_a_time: self.at_a_time, stop_after: self.stop_after };
        (window != GraphWindow::default()).then_some(window)
    }

    /// The number of its jobs, and of those that ended.
    pub fn counts(&self) -> GraphCounts {
        let Self { jobs, finished, failed, cancelled, .. } = *self;
        GraphCounts { jobs, finished, failed, cancelled }
    }
}

/// A job of a graph or batch, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobOfGraphDocument {
    /// The id of the job.
    pub id: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its outcome.
    pub outcome: GraphJobOutcome,
    /// Its state; absent if it was deleted or has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<JobStatus>,
    /// Its error, the first 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its place in the graph, from 0: prerequisites come before their dependents.
    pub place: u64,
}

impl From<&JobOfGraph> for JobOfGraphDocument {
    fn from(JobOfGraph { member, job }: &JobOfGraph) -> Self {
        let field = |name| job.as_ref().and_then(|job| job.fields.get(name)).cloned();
        Self {
            id: member.id.to_string(),
            name: field("name"),
            outcome: member.outcome(),
            status: job.as_ref().map(|job| job.status),
            error: field("error"),
            place: member.place(),
        }
    }
}

/// The result of an operation on the jobs of a graph or batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphChange {
    /// The jobs that were retried, stopped or deleted.
    pub done: u64,
    /// Running jobs whose actors were told to stop them.
    pub told: u64,
    /// The jobs that stay as they are, at most 100, and the reason.
    pub problems: Vec<GraphProblem>,
    /// The number of jobs that stay as they are.
    pub left: u64,
}

/// A job of a graph or batch that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphProblem {
    /// The id of the job.
    pub id: String,
    /// The reason.
    pub problem: String,
}

impl GraphChange {
    const PROBLEMS_MAX: usize = 100;

    pub(super) fn problem(&mut self, id: &JobId, error: &ClientError) {
        self.left += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(GraphProblem { id: id.to_string(), problem: error.to_string() });
        }
    }
}

/// Returns whether the hash of a job names a graph or batch: a later job may have the id of a deleted one.
fn is_of(job: &JobSummary, graph: &JobId) -> bool {
    job.fields.get("graph_id").is_some_and(|of| of == graph.as_str())
}

/// The outcomes of jobs that may run again.
pub(super) const NOT_FINISHED: [GraphJobOutcome; 2] =
    [GraphJobOutcome::Failed, GraphJobOutcome::Cancelled];

impl Client {
    /// Reads a graph or batch with its counts.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn graph(&self, id: &JobId) -> Result<GraphInfo, ClientError> {
        self.of(id)?.graph(id).await?.ok_or_else(|| ClientError::NoSuchGraph(id.clone()))
    }

    /// Lists graphs and batches, the newest first; `after` is the cursor of the page before.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn graphs(&self, limit: usize, after: Option<u64>) -> Result<GraphPage, ClientError> {
        Ok(self.shards.graphs(limit, after).await?)
    }

    /// Lists jobs of a graph or batch: those that failed, then the cancelled, then those that have not
    /// ended, then the finished; of one outcome those first that others wait for. `after` is the score of
    /// the last job of the page before.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn jobs_of_graph(
        &self,
        id: &JobId,
        outcome: Option<GraphJobOutcome>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<JobOfGraph>, ClientError> {
        let outcomes =
            outcome.as_ref().map_or(&GraphJobOutcome::WORST_FIRST[..], std::slice::from_ref);
        let members = self.of(id)?.graph_members(id, outcomes, after, limit).await?;
        let ids = members.iter().map(|member| member.id.clone()).collect();
        let jobs = self.of(id)?.summaries(ids).await?;
        let of_graph = |job: &JobSummary| is_of(job, id);
        let rows = members.into_iter().zip(jobs);
        Ok(rows.map(|(member, job)| JobOfGraph { member, job: job.filter(of_graph) }).collect())
    }

    /// Waits until all jobs of a graph or batch have ended, at most for `bound`. `news` gets it again and again meanwhile.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::GaveUp`] at the bound.
    pub async fn await_graph(
        &self,
        id: &JobId,
        bound: Option<Duration>,
        news: impl FnMut(&GraphInfo),
    ) -> Result<GraphInfo, ClientError> {
        let patience = WaitBound::new("graph", id, bound);
        let news = Mutex::new(news);
        let wait = || async {
            loop {
                let graph = self.graph(id).await?;
                patience.answered();
                news.lock().unwrap_or_else(PoisonError::into_inner)(&graph);
                if graph.counts.state() != GraphState::Running {
                    return Ok(graph);
                }
                self.waiters(id)?.next_reply(id).await?;
            }
        };
        patience.endure(wait).await
    }

    /// Returns a graph or batch as JSON has it, with the states of its callbacks.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn graph_document(&self, graph: &GraphInfo) -> Result<GraphDocument, ClientError> {
        let mut document = GraphDocument::from(graph);
        for (name, id) in &document.callbacks {
            let Ok(id) = id.parse::<JobId>() else { continue };
            let found = self.of(&id)?.summaries(vec![id.clone()]).await?;
            // A later job may have the id of one that held the key of a callback.
            let found = found.into_iter().flatten().filter(|job| is_of(job, &graph.id));
            document.callback_jobs.extend(found.map(|job| CallbackJob {
                callback: name.clone(),
                id: job.id.to_string(),
                status: job.intended_end().unwrap_or(job.status.as_str()).to_owned(),
            }));
        }
        Ok(document)
    }

    /// Stops all jobs of a graph or batch that have not ended.
    ///
    /// # Errors
    /// As [`Client::retry_graph`].
    pub async fn stop_graph(&self, id: &JobId) -> Result<GraphChange, ClientError> {
        // Jobs whose submission is decided, and not made, are stopped too.
        self.of(id)?.finish_commits(self.job.kept()).await?;
        let (by, members) = (self.author.signature(), self.of(id)?.within_graph(id));
        let mut change = GraphChange::default();
        // Dependents first: else they would fail with their prerequisite.
        for member in self.all_members(id, &[GraphJobOutcome::Waiting]).await?.iter().rev() {
            match members.stop_by(&member.id, self.job.kept(), &by).await? {
                StopOutcome::Stopped => change.done += 1,
                StopOutcome::Requested | StopOutcome::Own => change.told += 1,
                StopOutcome::Ended | StopOutcome::Missing => {}
                StopOutcome::Unowned => {
                    let status = "started by an actor that its hash does not name".to_owned();
                    let id = member.id.clone();
                    let error = ClientError::WrongState { doing: "stop", id, status };
                    change.problem(&member.id, &error);
                }
            }
        }
        let jobs = counted(change.done + change.told, "job", "jobs");
        self.note("graph.stop", format!("{id}: {jobs}")).await;
        Ok(change)
    }

    /// Changes the window of a graph or batch: zero takes a bound away.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn edit_graph(&self, id: &JobId, window: GraphWindow) -> Result<(), ClientError> {
        if !self.of(id)?.edit_graph(id, window).await? {
            return Err(ClientError::NoSuchGraph(id.clone()));
        }
        let changes: Vec<String> =
            window.fields().map(|(name, bound)| format!("{name} {bound}")).collect();
        self.note("graph.edit", format!("{id}: {}", changes.join(", "))).await;
        Ok(())
    }

    /// Deletes a graph or batch with all its jobs, unless one of them runs.
    ///
    /// # Errors
    /// [`ClientError::GraphRuns`] if a job runs; some of the jobs may be deleted if it began to run
    /// meanwhile. [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn delete_graph(&self, id: &JobId) -> Result<GraphChange, ClientError> {
        self.of(id)?.finish_commits(self.job.kept()).await?;
        let runs = |job: &JobId| ClientError::GraphRuns { id: id.clone(), job: job.clone() };
        let waiting = self.all_members(id, &[GraphJobOutcome::Waiting]).await?;
        for some in waiting.chunks(Store::GRAPHS_PER_PAGE_MAX) {
            let ids = some.iter().map(|member| member.id.clone()).collect();
            let jobs = self.of(id)?.summaries(ids).await?;
            let is_running = |job: &&JobSummary| job.status == JobStatus::Started && is_of(job, id);
            let running = jobs.iter().flatten().find(is_running);
            if let Some(job) = running {
                return Err(runs(&job.id));
            }
        }
        // A deleted job ends its dependents, and with them the graph.
        self.of(id)?.drop_callbacks(id).await?;
        let members = self.of(id)?.within_graph(id);
        let mut change = GraphChange::default();
        for member in self.all_members(id, &GraphJobOutcome::WORST_FIRST).await?.iter().rev() {
            match members.delete(&member.id, self.job.kept()).await? {
                DeleteOutcome::Deleted => change.done += 1,
                DeleteOutcome::Missing => {}
                DeleteOutcome::Running => return Err(runs(&member.id)),
            }
        }
        self.of(id)?.drop_graph(id).await?;
        self.note("graph.delete", format!("{id}: {}", counted(change.done, "job", "jobs"))).await;
        Ok(change)
    }

    /// Forgets a batch without an accepted job.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn drop_empty_batch(&self, id: &JobId) -> Result<(), ClientError> {
        if self.of(id)?.graph(id).await?.is_some_and(|batch| batch.counts.jobs == 0) {
            self.of(id)?.drop_graph(id).await?;
        }
        Ok(())
    }

    /// Lists all jobs of a graph with these outcomes, in the order of the graph.
    pub(super) async fn all_members(
        &self,
        id: &JobId,
        outcomes: &[GraphJobOutcome],
    ) -> Result<Vec<GraphMember>, ClientError> {
        self.graph(id).await?;
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let most = Store::GRAPHS_PER_PAGE_MAX;
            let page = self.of(id)?.graph_members(id, outcomes, after, most).await?;
            after = page.last().map(|member| member.score);
            let is_last = page.len() < most;
            all.extend(page);
            if is_last {
                break;
            }
        }
        all.sort_unstable_by_key(GraphMember::place);
        Ok(all)
    }
}
