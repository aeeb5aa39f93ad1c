//! Graphs and batches as objects: their lists, their counts, and their jobs by outcome.

use std::collections::BTreeMap;

use redis::{ScriptInvocation, Value};
use serde_json::json;

use super::submission::{fields_of_submitter, named_target};
use super::text::{StoredText, read};
use super::{GraphStore, newest};
use super::{Result, Shards, Store, StoreError};
use crate::proto::cron::CronName;
use crate::proto::every::Every;
use crate::proto::graph::{GraphCallback, GraphCounts, GraphInfo, GraphJobOutcome, GraphKind};
use crate::proto::job::{Job, JobId, JobName, NotifyName, Retention};
use crate::proto::window::GraphWindow;

const READING: &str = "reading graphs";

/// A graph or batch that is about to be stored.
#[derive(Debug, Clone)]
pub struct NewGraph {
    pub id: JobId,
    pub kind: GraphKind,
    /// Its name; several may have the same.
    pub name: Option<JobName>,
    /// The name of its submitter.
    pub caller: String,
    /// The jobs that it asks for at its end. They wait for no others, and for no time.
    pub callbacks: BTreeMap<GraphCallback, Job>,
    /// The notifications that tell of its end.
    pub notify: Vec<NotifyName>,
    /// The number of its jobs that run at once, and the failures after which no other starts.
    pub window: GraphWindow,
    /// The periodic job whose firing it is.
    pub cron: Option<CronName>,
    /// The receivers of its jobs, if they are copies of one job.
    pub every: Option<Every>,
}

impl Default for NewGraph {
    /// A graph of jobs alone, with a random id.
    fn default() -> Self {
        Self {
            id: JobId::random(),
            kind: GraphKind::Graph,
            name: None,
            caller: String::new(),
            callbacks: BTreeMap::new(),
            notify: Vec::new(),
            window: GraphWindow::default(),
            cron: None,
            every: None,
        }
    }
}

impl NewGraph {
    /// Returns whether a batch has something to do once it has all of its jobs.
    pub fn needs_close(&self) -> bool {
        !self.callbacks.is_empty() || !self.notify.is_empty() || self.window.has_share()
    }

    /// Adds its id, and its fields and values.
    pub(super) fn write(&self, script: &mut ScriptInvocation<'_>, jobs: usize) {
        script.arg(self.id.as_str()).arg("jobs").arg(jobs);
        script.arg("kind").arg(self.kind.as_str());
        if let Some(name) = &self.name {
            script.arg("name").arg(name.as_str());
        }
        if !self.caller.is_empty() {
            script.arg("caller").arg(&self.caller);
        }
        if !self.callbacks.is_empty() {
            script.arg("callbacks").arg("1");
        }
        if !self.notify.is_empty() {
            script.arg("notify").arg(json!(self.notify).to_string());
        }
        for (name, bound) in self.window.fields().filter(|(_, bound)| bound != "0") {
            script.arg(name).arg(bound);
        }
        if let Some(cron) = &self.cron {
            script.arg("cron").arg(cron.as_str());
        }
        if let Some(every) = self.every {
            script.arg("every").arg(every.as_str());
        }
        if let Some(ms) = pause_ms(self.window) {
            script.arg("pause_ms").arg(ms);
        }
        for (callback, job) in &self.callbacks {
            let mut texts = Vec::from(named_target(job));
            let fields = job.submitted_fields().into_iter().filter(|(name, _)| *name != "id");
            let fields = fields.chain(fields_of_submitter(job));
            texts.extend(fields.flat_map(|(name, value)| [name.to_owned(), value]));
            script.arg(callback.as_str()).arg(json!(texts).to_string());
        }
    }
}

/// A page of graphs and batches, the newest first.
#[derive(Debug, Clone, Default)]
pub struct GraphPage {
    pub items: Vec<GraphInfo>,
    /// The cursor to the next page, if there may be one.
    pub next: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphMember {
    pub id: JobId,
    /// Its outcome and place; also the cursor after it.
    pub score: u64,
}

impl GraphMember {
    /// Returns what became of it.
    pub fn outcome(&self) -> GraphJobOutcome {
        GraphJobOutcome::of_score(self.score).unwrap_or(GraphJobOutcome::Waiting)
    }

    /// Returns its place in the graph: prerequisites come before their dependents.
    pub fn place(&self) -> u64 {
        GraphJobOutcome::place_of_score(self.score)
    }
}

impl Store {
    /// The largest page of graphs, or of the jobs of one.
    pub const GRAPHS_PER_PAGE_MAX: usize = 1000;

    /// The maximum number of jobs of one batch that is not atomic.
    pub const BATCH_JOBS_MAX: u64 = 100_000;
}

impl GraphStore<'_> {
    /// Stores a batch; jobs are added to it as they are submitted. Returns false if its id is taken.
    pub async fn open(self, batch: &NewGraph) -> Result<bool> {
        let mut script = self.store.scripts.open_graph.prepare_invoke();
        batch.write(&mut script, 0);
        if batch.needs_close() {
            script.arg("open").arg("1");
        }
        if let Some(opening) = &self.store.rights.opening {
            script.arg("opening").arg(opening);
        }
        Ok(self.store.invoke::<u8>("storing a batch", &script).await? == 1)
    }

    /// Returns the number of jobs of a batch that was opened [`Store::adding_to`] this; `None` if it is closed or gone.
    pub async fn join(self, id: &JobId) -> Result<Option<u64>> {
        let arguments = (id.as_str(), self.store.rights.opening.as_deref().unwrap_or_default());
        let jobs: i64 = self
            .store
            .run_script("joining a batch", &self.store.scripts.join_batch, arguments)
            .await?;
        Ok(u64::try_from(jobs).ok())
    }

    /// Notes that a batch has all its jobs. If they have ended, this is its end. Calling again is safe.
    pub async fn close(self, id: &JobId, retention: impl Into<Retention>) -> Result<()> {
        if self
            .store
            .run_script("closing a batch", &self.store.scripts.close_batch, id.as_str())
            .await?
        {
            // The batch is closed, also if this fails: supervisors settle as well.
            let _ = self.store.schedule().settle(retention).await;
        }
        Ok(())
    }

    /// Changes the window of a graph or batch. Returns false if the caller may change none. Calling again is safe.
    pub async fn edit(self, id: &JobId, window: GraphWindow) -> Result<bool> {
        let text = |name| window.fields().find(|(of, _)| *of == name).map(|(_, bound)| bound);
        let bounds = ["at_a_time", "stop_after", "pause_after"].map(text);
        let bounds = bounds.map(Option::unwrap_or_default);
        let pause = pause_ms(window).map(|ms| ms.to_string()).unwrap_or_default();
        let (doing, arguments) = ("changing a graph", (id.as_str(), &bounds, pause));
        self.store.run_for_caller(doing, None, &self.store.scripts.edit_graph, arguments).await
    }

    /// Ends the pause of a graph or batch, also one that is to come. `None` if there is none that the caller may change,
    /// false if it has no pause. Calling again is safe.
    pub async fn end_pause(self, id: &JobId) -> Result<Option<bool>> {
        let (script, arguments) = (&self.store.scripts.edit_graph, (id.as_str(), "", "", "go", ""));
        let ended: u8 =
            self.store.run_for_caller("telling a graph to go on", None, script, arguments).await?;
        Ok((ended != 0).then_some(ended == 1))
    }

    /// Deletes a graph or batch; its jobs stay. Returns whether there was one.
    pub async fn drop(self, id: &JobId) -> Result<bool> {
        self.drop_parts(id, "").await
    }

    /// Takes the callbacks and notifications of a graph or batch away.
    pub async fn drop_callbacks(self, id: &JobId) -> Result<()> {
        self.drop_parts(id, "callbacks").await.map(drop)
    }

    async fn drop_parts(self, id: &JobId, what: &str) -> Result<bool> {
        let (doing, arguments) = ("deleting a graph", (id.as_str(), what));
        self.store.run_for_caller(doing, None, &self.store.scripts.drop_graph, arguments).await
    }

    /// Reads a graph or batch with its counts. `None` if it does not exist.
    pub async fn get(self, id: &JobId) -> Result<Option<GraphInfo>> {
        Ok(self.read(std::slice::from_ref(id)).await?.pop().flatten())
    }

    /// Lists graphs and batches, the newest first, with their counts.
    pub async fn list(self, limit: usize, after: Option<u64>) -> Result<GraphPage> {
        Shards::from(self.store.clone()).graphs(limit, after).await
    }

    pub(super) async fn entries(
        self,
        limit: usize,
        after: Option<u64>,
    ) -> Result<Vec<(JobId, u64)>> {
        let before = after.map_or_else(|| "+inf".to_owned(), |at| format!("({at}"));
        let arguments = (self.store.keys.graphs(), before, "-inf", "WITHSCORES", "LIMIT", 0, limit);
        let entries: Vec<(StoredText, f64)> =
            self.store.link.command("listing graphs", "ZREVRANGEBYSCORE", arguments).await?;
        Ok(entries.into_iter().filter_map(|(id, at)| Some((id.parse().ok()?, whole(at)))).collect())
    }

    pub(super) async fn forget(self, expired: &[&JobId]) -> Result<()> {
        if expired.is_empty() {
            return Ok(());
        }
        let expired: Vec<&str> = expired.iter().map(|id| id.as_str()).collect();
        let arguments = (self.store.keys.graphs(), expired);
        self.store.link.command::<u64>("removing expired graphs", "ZREM", arguments).await.map(drop)
    }

    pub(super) async fn read(self, ids: &[JobId]) -> Result<Vec<Option<GraphInfo>>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for id in ids {
            pipeline.cmd("HMGET").arg(self.store.keys.graph(id)).arg(&GraphInfo::FIELDS);
            let ended =
                [GraphJobOutcome::Finished, GraphJobOutcome::Failed, GraphJobOutcome::Cancelled];
            for outcome in ended {
                let (first, last) = outcome.scores();
                pipeline.cmd("ZCOUNT").arg(self.store.keys.graph_jobs(id)).arg(first).arg(last);
            }
        }
        pipeline.cmd("TIME");
        let mut answers: Vec<Value> = self.store.link.pipeline(READING, &pipeline).await?;
        let unexpected = || StoreError::unexpected(READING);
        let (s, us): (i64, i64) = answers.pop().and_then(read).ok_or_else(unexpected)?;
        let now_us = s.saturating_mul(1_000_000).saturating_add(us);
        let answers: Vec<(Vec<Option<String>>, u64, u64, u64)> =
            read(Value::Array(answers)).ok_or_else(unexpected)?;
        let graph = |(id, (values, finished, failed, cancelled)): (&JobId, _)| {
            let graph = GraphInfo::from_values(id.clone(), values, now_us)?;
            let jobs = graph.counts.jobs;
            Some(GraphInfo { counts: GraphCounts { jobs, finished, failed, cancelled }, ..graph })
        };
        Ok(ids.iter().zip(answers).map(graph).collect())
    }

    /// Lists jobs of a graph by their outcomes, jobs of one outcome in the order of the graph.
    pub async fn members(
        self,
        id: &JobId,
        outcomes: &[GraphJobOutcome],
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<GraphMember>> {
        let limit = limit.clamp(1, Store::GRAPHS_PER_PAGE_MAX);
        let mut members: Vec<GraphMember> = Vec::new();
        let seen = after.and_then(GraphJobOutcome::of_score);
        let mut is_behind = seen.is_none();
        for outcome in outcomes {
            let is_cut = seen == Some(*outcome);
            is_behind |= is_cut;
            if !is_behind || members.len() == limit {
                continue;
            }
            let (first, last) = outcome.scores();
            let from = after.filter(|_| is_cut).map(|score| format!("({score}"));
            let range = (from.unwrap_or_else(|| first.to_string()), last);
            let page = ("WITHSCORES", "LIMIT", 0, limit - members.len());
            let (doing, arguments) =
                ("listing the jobs of a graph", (self.store.keys.graph_jobs(id), range, page));
            let found: Vec<(StoredText, f64)> =
                self.store.link.command(doing, "ZRANGEBYSCORE", arguments).await?;
            members.extend(found.into_iter().filter_map(|(id, score)| {
                Some(GraphMember { id: id.parse().ok()?, score: whole(score) })
            }));
        }
        Ok(members)
    }
}

fn pause_ms(window: GraphWindow) -> Option<u64> {
    u64::try_from(window.pause_after?.time?.as_millis()).ok()
}

fn whole(score: f64) -> u64 {
    u64::try_from(newest::whole(score)).unwrap_or_default()
}
