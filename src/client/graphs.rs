//! Graphs and batches as objects: lists, shows, awaits, stops and deletes them; resumes them, with corrected jobs and from a
//! chosen step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::graph_documents::{CallbackJob, GraphChange, GraphDocument, JobOfGraph};
use super::wait::WaitBound;
use super::{ClientError, GraphClient, JobClient, Result, moved};
use crate::proto::graph::{GraphInfo, GraphJobOutcome, GraphState};
use crate::proto::job::{Corrections, JobId, JobStatus};
use crate::proto::text::counted;
use crate::proto::window::GraphWindow;
use crate::store::{
    DeleteOutcome, GraphMember, GraphPage, JobDependents, JobSummary, RetryOutcome, StopOutcome,
    Store,
};

/// Returns whether the hash of a job names a graph or batch: a later job may have the id of a deleted one.
fn is_of(job: &JobSummary, graph: &JobId) -> bool {
    job.fields.get("graph_id").is_some_and(|of| of == graph.as_str())
}

/// The outcomes of jobs that may run again.
const NOT_FINISHED: [GraphJobOutcome; 2] = [GraphJobOutcome::Failed, GraphJobOutcome::Cancelled];

impl GraphClient<'_> {
    /// Reads a graph or batch with its counts.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn get(self, id: &JobId) -> Result<GraphInfo> {
        self.client
            .of(id)?
            .graphs()
            .get(id)
            .await?
            .ok_or_else(|| ClientError::NoSuchGraph(id.clone()))
    }

    /// Lists graphs and batches, the newest first; `after` is the cursor of the page before.
    pub async fn list(self, limit: usize, after: Option<u64>) -> Result<GraphPage> {
        Ok(self.client.shards.graphs(limit, after).await?)
    }

    /// Lists jobs of a graph or batch: those that failed, then the cancelled, then those that have not
    /// ended, then the finished; of one outcome those first that others wait for. `after` is the score of
    /// the last job of the page before.
    pub async fn jobs(
        self,
        id: &JobId,
        outcome: Option<GraphJobOutcome>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<JobOfGraph>> {
        let outcomes =
            outcome.as_ref().map_or(&GraphJobOutcome::WORST_FIRST[..], std::slice::from_ref);
        let members = self.client.of(id)?.graphs().members(id, outcomes, after, limit).await?;
        let ids = members.iter().map(|member| member.id.clone()).collect();
        let jobs = self.client.of(id)?.jobs().summaries(ids).await?;
        let of_graph = |job: &JobSummary| is_of(job, id);
        let rows = members.into_iter().zip(jobs);
        Ok(rows.map(|(member, job)| JobOfGraph { member, job: job.filter(of_graph) }).collect())
    }

    /// Waits until all jobs of a graph or batch have ended, at most for `bound`. `news` gets it again and again meanwhile.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::GaveUp`] at the bound.
    pub async fn wait(
        self,
        id: &JobId,
        bound: Option<Duration>,
        news: impl FnMut(&GraphInfo),
    ) -> Result<GraphInfo> {
        let patience = WaitBound::new("graph", id, bound);
        let news = Mutex::new(news);
        let wait = || async {
            loop {
                let graph = self.get(id).await?;
                patience.answered();
                news.lock()(&graph);
                if graph.counts.state() != GraphState::Running {
                    return Ok(graph);
                }
                self.client.waiters(id)?.pop_reply(id).await?;
            }
        };
        patience.endure(wait).await
    }

    /// Returns a graph or batch as JSON has it, with the states of its callbacks.
    pub async fn document(self, graph: &GraphInfo) -> Result<GraphDocument> {
        let mut document = GraphDocument::from(graph);
        for (name, id) in &document.callbacks {
            let Ok(id) = id.parse::<JobId>() else { continue };
            let found = self.client.of(&id)?.jobs().summaries(vec![id.clone()]).await?;
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
    pub async fn stop(self, id: &JobId) -> Result<GraphChange> {
        // Jobs whose submission is decided, and not made, are stopped too.
        self.client.of(id)?.batches().finish(self.client.job.kept()).await?;
        let (by, members) = (self.client.author.signature(), self.client.of(id)?.within_graph(id));
        let mut change = GraphChange::default();
        // Dependents first: else they would fail with their prerequisite.
        for member in self.all_members(id, &[GraphJobOutcome::Waiting]).await?.iter().rev() {
            match members.jobs().stop_by(&member.id, self.client.job.kept(), None, &by).await? {
                StopOutcome::Stopped => change.done += 1,
                StopOutcome::Requested | StopOutcome::Own => change.told += 1,
                StopOutcome::Ended | StopOutcome::Missing => {}
                StopOutcome::Unowned => {
                    let status = "started by an actor that its hash does not name";
                    let error = ClientError::wrong_state("stop", &member.id, status);
                    change.problem(&member.id, &error);
                }
            }
        }
        let jobs = counted(change.done + change.told, "job", "jobs");
        self.client.audit().note("graph.stop", format!("{id}: {jobs}")).await;
        Ok(change)
    }

    /// Changes the window of a graph or batch: zero takes a bound away.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn edit(self, id: &JobId, window: GraphWindow) -> Result<()> {
        if !self.client.of(id)?.graphs().edit(id, window).await? {
            return Err(ClientError::NoSuchGraph(id.clone()));
        }
        let changes: Vec<String> =
            window.fields().map(|(name, bound)| format!("{name} {bound}")).collect();
        self.client.audit().note("graph.edit", format!("{id}: {}", changes.join(", "))).await;
        Ok(())
    }

    /// Ends the pause of a graph or batch, also one that is to come. Returns false if it has none.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn end_pause(self, id: &JobId) -> Result<bool> {
        let ended = self.client.of(id)?.graphs().end_pause(id).await?;
        let ended = ended.ok_or_else(|| ClientError::NoSuchGraph(id.clone()))?;
        if ended {
            self.client.audit().note("graph.tell", format!("{id}: go")).await;
        }
        Ok(ended)
    }

    /// Deletes a graph or batch with all its jobs, unless one of them runs.
    ///
    /// # Errors
    /// [`ClientError::GraphRuns`] if a job runs; some of the jobs may be deleted if it began to run
    /// meanwhile. [`ClientError::NoSuchGraph`], [`ClientError::Store`].
    pub async fn delete(self, id: &JobId) -> Result<GraphChange> {
        self.client.of(id)?.batches().finish(self.client.job.kept()).await?;
        let runs = |job: &JobId| ClientError::GraphRuns { id: id.clone(), job: job.clone() };
        let waiting = self.all_members(id, &[GraphJobOutcome::Waiting]).await?;
        for some in waiting.chunks(Store::GRAPHS_PER_PAGE_MAX) {
            let ids = some.iter().map(|member| member.id.clone()).collect();
            let jobs = self.client.of(id)?.jobs().summaries(ids).await?;
            let is_running = |job: &&JobSummary| job.status == JobStatus::Started && is_of(job, id);
            let running = jobs.iter().flatten().find(is_running);
            if let Some(job) = running {
                return Err(runs(&job.id));
            }
        }
        // A deleted job ends its dependents, and with them the graph.
        self.client.of(id)?.graphs().drop_callbacks(id).await?;
        let members = self.client.of(id)?.within_graph(id);
        let mut change = GraphChange::default();
        for member in self.all_members(id, &GraphJobOutcome::WORST_FIRST).await?.iter().rev() {
            match members.jobs().delete(&member.id, self.client.job.kept()).await? {
                DeleteOutcome::Deleted => change.done += 1,
                DeleteOutcome::Missing => {}
                DeleteOutcome::Running => return Err(runs(&member.id)),
            }
        }
        self.client.of(id)?.graphs().drop(id).await?;
        self.client
            .audit()
            .note("graph.delete", format!("{id}: {}", counted(change.done, "job", "jobs")))
            .await;
        Ok(change)
    }

    /// Forgets a batch without an accepted job. Returns whether it was one.
    pub async fn drop_empty_batch(self, id: &JobId) -> Result<bool> {
        let batch = self.client.of(id)?.graphs().get(id).await?;
        let is_empty = batch.is_some_and(|batch| batch.counts.jobs == 0);
        if is_empty {
            self.client.of(id)?.graphs().drop(id).await?;
        }
        Ok(is_empty)
    }

    /// Lists all jobs of a graph with these outcomes, in the order of the graph.
    async fn all_members(
        self,
        id: &JobId,
        outcomes: &[GraphJobOutcome],
    ) -> Result<Vec<GraphMember>> {
        self.get(id).await?;
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let most = Store::GRAPHS_PER_PAGE_MAX;
            let page = self.client.of(id)?.graphs().members(id, outcomes, after, most).await?;
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

    /// Runs those jobs of a graph or batch again that failed or were stopped, or a step and what depends on it. Each
    /// waits for its prerequisites again.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`]; [`ClientError::Step`] for a name that is unknown or of a job that would not run,
    /// [`ClientError::Invalid`] for a change that is not legal, and then no job was retried;
    /// [`ClientError::Store`], and then the jobs before it were.
    pub async fn retry(self, id: &JobId, how: &GraphRetry) -> Result<GraphChange> {
        self.client.of(id)?.schedule().finish_stop(id, self.client.job.kept()).await?;
        let (members, corrections) = self.to_retry(id, how).await?;
        let mut change = GraphChange::default();
        let (none, members_store) = (Corrections::new(), self.client.of(id)?.within_graph(id));
        // In the order of the graph: a job is retried after its prerequisites.
        for member in members {
            let own = corrections.get(&member.id).unwrap_or(&none);
            match members_store.jobs().retry_corrected(&member.id, own).await? {
                RetryOutcome::Moved(_) => change.done += 1,
                other => {
                    if let Err(error) = moved("retry", &member.id, other) {
                        change.problem(&member.id, &error);
                    }
                }
            }
        }
        let from = how.from.as_ref().map(|step| format!(" from {step}")).unwrap_or_default();
        let changed: Vec<&str> = how.changes.keys().map(String::as_str).collect();
        let changed = if changed.is_empty() {
            String::new()
        } else {
            format!(", changed {}", changed.join(", "))
        };
        let jobs = counted(change.done, "job", "jobs");
        self.client.audit().note("graph.retry", format!("{id}{from}: {jobs}{changed}")).await;
        Ok(change)
    }

    /// Returns the jobs that run again, in the order of the graph, and their corrections.
    async fn to_retry(
        self,
        id: &JobId,
        how: &GraphRetry,
    ) -> Result<(Vec<GraphMember>, BTreeMap<JobId, Corrections>)> {
        if *how == GraphRetry::default() {
            return Ok((self.all_members(id, &NOT_FINISHED).await?, BTreeMap::new()));
        }
        let steps = self.steps(id).await?;
        let chosen = if let Some(step) = &how.from {
            with_followers(&steps, &named(id, &steps, step)?.0.id)
        } else {
            let failed = |(member, _): &&Step| NOT_FINISHED.contains(&member.outcome());
            steps.iter().filter(failed).map(|(member, _)| member.id.clone()).collect()
        };
        let mut corrections = BTreeMap::new();
        for (step, changes) in &how.changes {
            let job = &named(id, &steps, step)?.0.id;
            if !chosen.contains(job) {
                let why =
                    "is not among the jobs that run again; to run it and all jobs after it: --from"
                        .to_owned();
                return Err(ClientError::Step { graph: id.clone(), step: step.clone(), why });
            }
            if !self.client.of(id)?.may_correct(job) {
                let why = "is another job since it was checked; try again".to_owned();
                return Err(ClientError::Step { graph: id.clone(), step: step.clone(), why });
            }
            corrections.insert(job.clone(), self.client.jobs().corrections(job, changes).await?);
        }
        let members = steps.into_iter().map(|(member, _)| member);
        Ok((members.filter(|member| chosen.contains(&member.id)).collect(), corrections))
    }

    /// Returns the ids of the jobs that changes of a graph name.
    pub async fn steps_named<'a>(
        self,
        id: &JobId,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<Vec<JobId>> {
        let steps = self.steps(id).await?;
        let ids = names.into_iter().map(|name| Ok(named(id, &steps, name)?.0.id.clone()));
        ids.collect()
    }

    async fn steps(self, id: &JobId) -> Result<Vec<Step>> {
        let members = self.all_members(id, &GraphJobOutcome::WORST_FIRST).await?;
        let mut steps = Vec::with_capacity(members.len());
        for some in members.chunks(Store::GRAPHS_PER_PAGE_MAX) {
            let ids: Vec<JobId> = some.iter().map(|member| member.id.clone()).collect();
            let jobs = some.iter().cloned().zip(self.client.of(id)?.jobs().dependents(&ids).await?);
            // A later job may have the id of a deleted one.
            steps.extend(jobs.filter(|(_, job)| job.graph.as_deref() == Some(id.as_str())));
        }
        Ok(steps)
    }
}

impl JobClient<'_> {
    /// Reads the outputs of jobs of a graph or batch; `None` for one that is longer than `bytes_max`, or has a key of its own.
    pub async fn short_outputs(
        self,
        graph: &JobId,
        jobs: &[&JobId],
        bytes_max: u64,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(self.client.of(graph)?.jobs().short_outputs(jobs, bytes_max).await?)
    }

    /// Reads the last line of the log of each of these jobs of a graph or batch; empty without one.
    pub async fn last_lines(self, graph: &JobId, jobs: &[&JobId]) -> Result<Vec<String>> {
        Ok(self.client.of(graph)?.logs().last_lines(jobs).await?)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphRetry {
    /// The step, by its name or id, that runs again with all jobs that depend on it, whether they failed or finished.
    /// Without it, the jobs that failed or were stopped.
    pub from: Option<String>,
    /// New values of settings by the names of their jobs, or by the ids of these. The members of a value are named
    /// as the fields of the hash; null takes one away.
    pub changes: BTreeMap<String, Map<String, Value>>,
}

type Step = (GraphMember, JobDependents);

fn named<'a>(graph: &JobId, steps: &'a [Step], name: &str) -> Result<&'a Step> {
    let fits =
        |(member, job): &&Step| job.name.as_deref() == Some(name) || member.id.as_str() == name;
    let wrong =
        |why: String| ClientError::Step { graph: graph.clone(), step: name.to_owned(), why };
    let mut found = steps.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(step), None) => Ok(step),
        (Some(_), Some(_)) => Err(wrong("is the name of several jobs; give an id".to_owned())),
        (None, _) => {
            let known: Vec<&str> =
                steps.iter().filter_map(|(_, job)| job.name.as_deref()).take(20).collect();
            Err(wrong(format!("is not the name of a job; jobs: {}", known.join(", "))))
        }
    }
}

/// Returns a step and all that depend on it. Prerequisites come before their dependents.
fn with_followers(steps: &[Step], first: &JobId) -> BTreeSet<JobId> {
    let mut chosen = BTreeSet::from([first.clone()]);
    for (member, job) in steps {
        if job.prerequisites.iter().any(|before| chosen.contains(before)) {
            chosen.insert(member.id.clone());
        }
    }
    chosen
}
