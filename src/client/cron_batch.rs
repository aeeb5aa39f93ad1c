//! Periodic jobs whose firings are batches or graphs.

use jiff::Timestamp;

use super::many::unaccepted;
use super::new_batch::members;
use super::{Client, ClientError, FleetMember, Graph, NewBatch, Result};
use crate::config::CronEntry;
use crate::proto::cron::delay_of;
use crate::proto::every::CronFleet;
use crate::proto::graph::GraphKind;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Job, JobId, TraceParent};
use crate::store::{BackfilledJob, BatchOutcome, FiredBatch};

impl Client {
    /// Returns the batch or graph that a firing submits at its time, in a trace.
    ///
    /// # Errors
    /// As [`Client::submit_graph`] and [`Client::fleet`]; [`ClientError::NoLiveMachine`].
    pub async fn cron_firing(
        &self,
        entry: &CronEntry,
        due: Timestamp,
        id: JobId,
        trace: Option<TraceParent>,
    ) -> Result<FiredBatch> {
        let mut firing = self.cron_batch(entry, (due, true), id, trace).await?;
        self.complete_firing(&mut firing).await?;
        Ok(firing)
    }

    pub fn refusal_of_firing(outcome: BatchOutcome, firing: &FiredBatch) -> ClientError {
        unaccepted(outcome, &firing.jobs, &firing.graph.id, &|place| name_of(&firing.jobs[place]))
    }

    async fn complete_firing(&self, firing: &mut FiredBatch) -> Result<()> {
        let (on, jobs) = (self.of(&firing.graph.id)?, &firing.jobs);
        let complete = self.complete_batch(on, jobs, &|place| name_of(&jobs[place])).await?;
        firing.jobs = complete.into_owned();
        Ok(())
    }

    /// Returns the batch or graph of a firing, or of a run beside the schedule.
    async fn cron_batch(
        &self,
        entry: &CronEntry,
        (at, is_due): (Timestamp, bool),
        id: JobId,
        trace: Option<TraceParent>,
    ) -> Result<FiredBatch> {
        match (&entry.fleet, entry.graph(at)) {
            (_, Some(plan)) => self.cron_graph(entry, plan, id, trace).await,
            (Some(fleet), None) => {
                let mut job = entry.job(at);
                job.spec.traceparent = trace;
                let due = is_due.then_some(at);
                Box::pin(self.cron_fleet(entry, (fleet, job), due, id)).await
            }
            (None, None) => Err(ClientError::NoSuchGraph(id)),
        }
    }

    async fn cron_graph(
        &self,
        entry: &CronEntry,
        plan: GraphPlan<Job>,
        id: JobId,
        trace: Option<TraceParent>,
    ) -> Result<FiredBatch> {
        let mut graph = Graph::of(plan)?;
        graph.set_id(id);
        graph.head.cron = Some(entry.name.clone());
        if graph.head.name.is_none() {
            graph.head.name = entry.name.as_str().parse().ok();
        }
        graph.join_trace(trace);
        let (graph, jobs) = self.prepared(&mut graph).await?;
        Ok(FiredBatch { graph, jobs, note: String::new() })
    }

    /// Returns the batch of a job for every machine or actor. At a firing each copy starts after a delay that depends on its
    /// machine alone, at most the spread.
    async fn cron_fleet(
        &self,
        entry: &CronEntry,
        (fleet, mut job): (&CronFleet, Job),
        due: Option<Timestamp>,
        id: JobId,
    ) -> Result<FiredBatch> {
        self.resolve_script(&mut job).await?;
        // They are for the batch.
        let notify = std::mem::take(&mut job.spec.notify);
        let (mut jobs, mut absent) = (Vec::new(), Vec::new());
        for FleetMember { machine, actor, job } in self.fleet(&job, fleet.every).await? {
            let Some(mut job) = job else {
                absent.push(actor.map_or(machine.host, |actor| actor.to_string()));
                continue;
            };
            let own = actor.map_or(machine.machine, |actor| actor.to_string());
            let delay = delay_of(&own, fleet.spread);
            if let Some(due) = due.filter(|_| !delay.is_zero()) {
                job.spec.run_at = due.checked_add(delay).ok();
            }
            self.place_beside(&id, &mut job)?;
            jobs.push(job);
        }
        let note = without_copy(&absent);
        if jobs.is_empty() {
            return Err(ClientError::NoLiveMachine(note));
        }
        let batch = NewBatch {
            name: job.spec.name,
            notify,
            window: fleet.window,
            cron: Some(entry.name.clone()),
            every: Some(fleet.every),
            ..NewBatch::with_id(Some(id))
        };
        let graph = batch.stored_with(GraphKind::Batch, &jobs);
        Ok(FiredBatch { jobs: members(&jobs, &graph.id), graph, note })
    }

    /// Submits the batch or graph of a periodic job now, besides its schedule. Returns its id.
    pub(super) async fn run_cron_batch(&self, entry: &CronEntry) -> Result<JobId> {
        let now = self.now().await?;
        // By the beginning its end counts as one of a firing.
        let random = JobId::random().to_string();
        let id: JobId = format!("{}-{}", entry.name.job_id(now)?, &random[..8]).parse()?;
        let FiredBatch { graph, jobs, .. } =
            self.cron_batch(entry, (now, false), id.clone(), None).await?;
        let name = |place: usize| name_of(&jobs[place]);
        self.submit_whole(self.of(&id)?, &jobs, &graph, &name).await?;
        Ok(id)
    }

    /// Submits the graph of a periodic job for a time of the past, behind the jobs of the one before. Returns its jobs too.
    pub(super) async fn backfill_graph(
        &self,
        entry: &CronEntry,
        due: Timestamp,
        before: &[JobId],
        only_missing: bool,
    ) -> Result<(BackfilledJob, Vec<JobId>)> {
        let (fired, id) = (entry.name.job_id(due)?, entry.name.backfill_id(due)?);
        let mut graph = self.cron_batch(entry, (due, false), id, None).await?;
        for spec in graph.jobs.iter_mut().map(|job| &mut job.spec) {
            if spec.waits_for().next().is_none() {
                spec.after_any = before.to_vec();
            }
        }
        self.complete_firing(&mut graph).await?;
        let (fired, kept) = ((&fired, only_missing), self.job.kept());
        let filled = self.store.backfill_graph(&entry.name, due, fired, &graph, kept).await?;
        let filled = filled.unwrap_or_else(|outcome| {
            BackfilledJob::Failed(Self::refusal_of_firing(outcome, &graph).to_string())
        });
        Ok((filled, graph.jobs.into_iter().map(|job| job.id).collect()))
    }
}

fn name_of(job: &Job) -> String {
    let name = job.spec.name.as_ref().map(ToString::to_string);
    name.unwrap_or_else(|| job.id.to_string())
}

/// Returns the absent machines or actors, which get no copy, in words; empty if all get one.
fn without_copy(absent: &[String]) -> String {
    const NAMES_MAX: usize = 5;
    let names = absent.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match absent.len() {
        0 => String::new(),
        1..=NAMES_MAX => format!("absent: {names}"),
        number => format!("{number} absent: {names}, …"),
    }
}
