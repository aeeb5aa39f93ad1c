//! Runs of periodic jobs: firings that are batches or graphs, and the backfill of firings in a period of the past.

use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::Serialize;

use super::many::unaccepted;
use super::new_batch::{members, stored_with};
use super::periodic_jobs::entry;
use super::{ClientError, CronClient, FleetMember, Graph, Result};
use crate::config::{CronEntry, Crontab};
use crate::error::{Error, Exit};
use crate::proto::cron::{Overlap, delay_of};
use crate::proto::every::CronFleet;
use crate::proto::graph::GraphKind;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Job, JobId, TraceParent};
use crate::store::{BackfilledJob, BatchOutcome, FiredBatch, NewGraph};

impl CronClient<'_> {
    /// Returns the batch or graph that a firing submits at its time, in a trace.
    ///
    /// # Errors
    /// As [`GraphClient::submit`](super::GraphClient::submit) and [`MachineClient::fleet`](super::MachineClient::fleet); [`ClientError::NoLiveMachine`].
    pub async fn firing(
        self,
        entry: &CronEntry,
        due: Timestamp,
        id: JobId,
        trace: Option<TraceParent>,
    ) -> Result<FiredBatch> {
        let mut firing = self.batch(entry, (due, true), id, trace).await?;
        self.complete_firing(&mut firing).await?;
        Ok(firing)
    }

    pub fn refusal_of_firing(outcome: BatchOutcome, firing: &FiredBatch) -> ClientError {
        unaccepted(outcome, &firing.jobs, &firing.graph.id, &|place| name_of(&firing.jobs[place]))
    }

    async fn complete_firing(self, firing: &mut FiredBatch) -> Result<()> {
        let (on, jobs) = (self.client.of(&firing.graph.id)?, &firing.jobs);
        let complete = self.client.complete_batch(on, jobs, &|place| name_of(&jobs[place])).await?;
        firing.jobs = complete.into_owned();
        Ok(())
    }

    /// Returns the batch or graph of a firing, or of a run beside the schedule.
    async fn batch(
        self,
        entry: &CronEntry,
        (at, is_due): (Timestamp, bool),
        id: JobId,
        trace: Option<TraceParent>,
    ) -> Result<FiredBatch> {
        match (&entry.fleet, entry.graph(at)) {
            (_, Some(plan)) => self.graph(entry, plan, id, trace).await,
            (Some(fleet), None) => {
                let mut job = entry.job(at);
                job.spec.traceparent = trace;
                let due = is_due.then_some(at);
                Box::pin(self.fleet(entry, (fleet, job), due, id)).await
            }
            (None, None) => Err(ClientError::NoSuchGraph(id)),
        }
    }

    async fn graph(
        self,
        entry: &CronEntry,
        plan: GraphPlan<Job>,
        id: JobId,
        trace: Option<TraceParent>,
    ) -> Result<FiredBatch> {
        let mut graph = Graph::of(plan)?;
        graph.set_id(id);
        graph.new.cron = Some(entry.name.clone());
        if graph.new.name.is_none() {
            graph.new.name = entry.name.as_str().parse().ok();
        }
        graph.join_trace(trace);
        let (graph, jobs) = self.client.prepared(&mut graph).await?;
        Ok(FiredBatch { graph, jobs, note: String::new() })
    }

    /// Returns the batch of a job for every machine or actor. At a firing each copy starts after a delay that depends on its
    /// machine alone, at most the spread.
    async fn fleet(
        self,
        entry: &CronEntry,
        (fleet, mut job): (&CronFleet, Job),
        due: Option<Timestamp>,
        id: JobId,
    ) -> Result<FiredBatch> {
        self.client.scripts().resolve(&mut job).await?;
        // They are for the batch.
        let notify = std::mem::take(&mut job.spec.notify);
        let (mut jobs, mut absent) = (Vec::new(), Vec::new());
        for FleetMember { machine, actor, job } in
            self.client.machines().fleet(&job, fleet.every).await?
        {
            let Some(mut job) = job else {
                absent.push(actor.map_or(machine.host, |actor| actor.to_string()));
                continue;
            };
            let own = actor.map_or(machine.machine, |actor| actor.to_string());
            let delay = delay_of(&own, fleet.spread);
            if let Some(due) = due.filter(|_| !delay.is_zero()) {
                job.spec.run_at = due.checked_add(delay).ok();
            }
            self.client.place_on_shard_of(&id, &mut job)?;
            jobs.push(job);
        }
        let note = without_copy(&absent);
        if jobs.is_empty() {
            return Err(ClientError::NoLiveMachine(note));
        }
        let batch = NewGraph {
            id,
            kind: GraphKind::Batch,
            name: job.spec.name,
            notify,
            window: fleet.window,
            cron: Some(entry.name.clone()),
            every: Some(fleet.every),
            ..NewGraph::default()
        };
        let graph = stored_with(&batch, &jobs);
        Ok(FiredBatch { jobs: members(&jobs, &graph.id), graph, note })
    }

    /// Submits the batch or graph of a periodic job now, besides its schedule. Returns its id.
    pub(super) async fn run_batch(self, entry: &CronEntry) -> Result<JobId> {
        let now = self.client.system().now().await?;
        // By the beginning its end counts as one of a firing.
        let random = JobId::random().to_string();
        let id: JobId = format!("{}-{}", entry.name.job_id(now)?, &random[..8]).parse()?;
        let FiredBatch { graph, jobs, .. } =
            self.batch(entry, (now, false), id.clone(), None).await?;
        let name = |place: usize| name_of(&jobs[place]);
        self.client.submit_whole(self.client.of(&id)?, &jobs, &graph, &name).await?;
        Ok(id)
    }

    /// Submits the graph of a periodic job for a time of the past, behind the jobs of the one before. Returns its jobs too.
    async fn backfill_graph(
        self,
        entry: &CronEntry,
        due: Timestamp,
        before: &[JobId],
        only_missing: bool,
    ) -> Result<(BackfilledJob, Vec<JobId>)> {
        let (fired, id) = (entry.name.job_id(due)?, entry.name.backfill_id(due)?);
        let mut graph = self.batch(entry, (due, false), id, None).await?;
        for spec in graph.jobs.iter_mut().map(|job| &mut job.spec) {
            if spec.waits_for().next().is_none() {
                spec.after_any = before.to_vec();
            }
        }
        self.complete_firing(&mut graph).await?;
        let (fired, kept) = ((&fired, only_missing), self.client.job.kept());
        let filled =
            self.client.store.cron().backfill_graph(&entry.name, due, fired, &graph, kept).await?;
        let filled = filled.unwrap_or_else(|outcome| {
            BackfilledJob::Failed(Self::refusal_of_firing(outcome, &graph).to_string())
        });
        Ok((filled, graph.jobs.into_iter().map(|job| job.id).collect()))
    }

    /// Lists the firings of one of the periodic jobs of [`CronClient::crontab`] in a period that a backfill would submit.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is no such periodic job; [`Exit::Data`] if the period ends before it begins or in the
    /// future, has no firing, or more than [`BACKFILL_MAX`].
    pub async fn firings_within(
        self,
        crontab: &Crontab,
        name: &str,
        period: &BackfillPeriod,
    ) -> Result<Vec<Timestamp>, Error> {
        let crontab = self.crontab(crontab).await?;
        let entry = entry(&crontab, name)?;
        let mut times = Vec::new();
        for due in within(entry, period, self.client.system().now().await?)? {
            let fired = entry.name.job_id(due).map_err(ClientError::from)?;
            let id = entry.name.backfill_id(due).map_err(ClientError::from)?;
            let fired = (&fired, period.only_missing);
            let asked = self.client.store.cron();
            let asked = asked.would_backfill(&entry.name, due, fired, &id).await;
            if asked.map_err(ClientError::from)? {
                times.push(due);
            }
        }
        Ok(times)
    }

    /// Submits the jobs or graphs of a periodic job for its firings in a period, each with its own time. One for which the
    /// job or graph of a backfill is kept is not submitted again. Unless its overlap is `allow`, each waits for the end of the
    /// one before.
    ///
    /// # Errors
    /// As [`Self::firings_within`]; [`Exit::Data`] if a job was refused; the code of [`ClientError::Store`].
    pub async fn backfill(
        self,
        crontab: &Crontab,
        name: &str,
        period: &BackfillPeriod,
    ) -> Result<Vec<BackfilledFiring>, Error> {
        let crontab = self.crontab(crontab).await?;
        let entry = entry(&crontab, name)?;
        if entry.fleet.is_some() {
            let why =
                "each of its firings is a batch for every machine: hero cron run submits one now";
            return Err(Error::new(Exit::Data, format!("cannot backfill {name}: {why}")));
        }
        let times = within(entry, period, self.client.system().now().await?)?;
        let (mut done, mut before) = (Vec::with_capacity(times.len()), Vec::new());
        for due in times {
            let id = entry.name.backfill_id(due).map_err(ClientError::from)?;
            let (filled, jobs) = if entry.graph.is_some() {
                Box::pin(self.backfill_graph(entry, due, &before, period.only_missing)).await?
            } else {
                let (mut job, fired) = job_of(entry, due, &before)?;
                self.client.scripts().resolve(&mut job).await?;
                let rules = (&fired, period.only_missing);
                let filled = self.client.store.cron().backfill(
                    &entry.name,
                    due,
                    rules,
                    &job,
                    self.client.job.kept(),
                );
                (filled.await.map_err(ClientError::from)?, vec![job.id])
            };
            let (outcome, id) = match filled {
                BackfilledJob::Submitted => ("submitted", id.to_string()),
                BackfilledJob::Fired(id) => ("fired", id),
                BackfilledJob::Exists => ("exists", id.to_string()),
                BackfilledJob::LeftOut(id) => ("left_out", id),
                BackfilledJob::Failed(why) => {
                    let message = format!(
                        "cannot backfill {} at {due}: {why}; {} firings before it were submitted",
                        entry.name,
                        done.len()
                    );
                    return Err(Error::new(Exit::Data, message));
                }
            };
            if outcome == "submitted" && entry.overlap != Overlap::Allow {
                before = jobs;
            }
            done.push(BackfilledFiring {
                due: due.to_string(),
                outcome: outcome.to_owned(),
                job_id: id,
            });
        }
        self.client
            .audit()
            .note("cron.backfill", format!("{}: {} firings", entry.name, done.len()))
            .await;
        Ok(done)
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

pub const BACKFILL_MAX: usize = 1000;

/// A period of the past.
#[derive(Debug, Clone, Copy)]
pub struct BackfillPeriod {
    /// Its first moment.
    pub since: Timestamp,
    /// Its last moment.
    pub until: Timestamp,
    /// Leaves out the times for which the periodic job fired.
    pub only_missing: bool,
}

/// One firing of a backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackfilledFiring {
    /// The due time, in RFC 3339.
    pub due: String,
    /// Its outcome: submitted; fired, if it fired at its time and that is left out; exists, if it was backfilled before;
    /// `left_out`, if another job holds its unique key.
    #[schemars(extend("enum" = ["submitted", "fired", "exists", "left_out"]))]
    pub outcome: String,
    /// Its job or graph, or the job for which it is left out.
    pub job_id: String,
}

/// Returns the job of a firing, behind the one before, and the id that its firing in time has.
fn job_of(entry: &CronEntry, due: Timestamp, before: &[JobId]) -> Result<(Job, JobId), Error> {
    let illegal = |error| Error::new(Exit::Data, format!("cron {}: {error}", entry.name));
    let mut job = entry.job(due);
    let fired = entry.name.job_id(due).map_err(illegal)?;
    job.id = entry.name.backfill_id(due).map_err(illegal)?;
    job.spec.after_any = before.to_vec();
    Ok((job, fired))
}

fn within(
    entry: &CronEntry,
    period: &BackfillPeriod,
    now: Timestamp,
) -> Result<Vec<Timestamp>, Error> {
    let refused =
        |why: String| Err(Error::new(Exit::Data, format!("cannot backfill {}: {why}", entry.name)));
    let BackfillPeriod { since, until, .. } = *period;
    if since > until {
        return refused(format!("the period begins at {since}, after its end at {until}"));
    }
    if until > now {
        return refused(format!("the period ends in the future, at {until}"));
    }
    let next = |at: &Timestamp| entry.schedule.next_after(*at).filter(|at| *at <= until);
    let from = since.checked_sub(1.second()).unwrap_or(since);
    let times: Vec<Timestamp> =
        std::iter::successors(next(&from), next).take(BACKFILL_MAX + 1).collect();
    match times.len() {
        0 => refused(format!("it has no firing from {since} to {until}")),
        number if number > BACKFILL_MAX => refused(format!(
            "the period has more than {BACKFILL_MAX} firings; choose a shorter one"
        )),
        _ => Ok(times),
    }
}
