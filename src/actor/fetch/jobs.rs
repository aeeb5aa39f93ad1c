//! The jobs of one shard in this process: the slots of its actors, and the running jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

use super::inputs::{JobInputs, ReadInputs};
use super::script_requests::RunningRequest;
use super::slots::Slots;
use crate::actor::boot::Boot;
use crate::actor::log_buffer::LogBuffer;
use crate::actor::requests::Requests;
use crate::actor::running_job::{RunOutcome, RunningJob, TracedAttempt};
use crate::actor::secrets::Secrets;
use crate::actor::settings::ActorSettings;
use crate::actor::{job_log_lines, verdict};
use crate::engine::{Cancel, Log, StopReason};
use crate::proto::job::{InvalidJob, Job, JobId, TraceParent};
use crate::proto::queue::Queue;
use crate::proto::target::ActorId;
use crate::store::{Attempt, Counts, ReturnedAttempt, Verdict};

/// Outcomes that may wait for the loop; a thread with one more blocks.
const OUTCOMES_MAX: usize = 1024;
/// The longest time that a job which was claimed ahead waits for a thread; then it goes back to its queue,
/// where another actor may take it.
const AHEAD_WAIT: Duration = Duration::from_millis(5);
/// The maximum number of stops remembered for jobs whose claim is still being answered.
const EARLY_STOPS_MAX: usize = 1000;

pub(super) struct Jobs {
    pub(super) boot: Arc<Boot>,
    pub(super) slots: Vec<Slots>,
    /// The running jobs, and those that wait for a thread.
    pub(super) running: HashMap<JobId, Arc<RunningJob>>,
    /// Notified when a running job has written log lines.
    pub(super) log_written: Arc<Notify>,
    /// Notified when the script of a running job asks for something.
    pub(super) asked: Arc<Notify>,
    /// Notified when a task of the process is kept for a claim.
    pub(super) task_kept: Arc<Notify>,
    /// The number of this boot in the handover of each actor.
    boots: Vec<u64>,
    outcomes: mpsc::Sender<RunOutcome>,
    /// Jobs to be stopped as soon as they start.
    early_stops: Vec<JobId>,
}

impl Jobs {
    /// Begins without jobs. Returns the channel of their outcomes.
    pub(super) fn new(
        boot: &Arc<Boot>,
        settings: &Arc<ActorSettings>,
    ) -> std::io::Result<(Self, mpsc::Receiver<RunOutcome>)> {
        let (sender, outcomes) = mpsc::channel(OUTCOMES_MAX);
        let slots = |(actor, id): (usize, &ActorId)| {
            let legacy = boot.store.legacy().lists(id);
            Slots::new(id.clone(), settings.tasks(actor), boot.store.keys(), legacy)
        };
        let crew = &boot.process.crew;
        crew.take_over(settings)?;
        let boots = crew.workers.iter().map(|workers| workers.join(boot.place));
        let boots = boots.collect::<std::io::Result<_>>()?;
        let task_kept: Arc<Notify> = Arc::default();
        for workers in &crew.workers {
            workers.handover().tell(boot.place, &task_kept);
        }
        let jobs = Self {
            slots: boot.actors.iter().enumerate().map(slots).collect(),
            running: HashMap::new(),
            log_written: Arc::default(),
            asked: Arc::default(),
            task_kept,
            boots,
            outcomes: sender,
            early_stops: Vec::new(),
            boot: Arc::clone(boot),
        };
        Ok((jobs, outcomes))
    }

    /// Takes over new settings. Running jobs keep theirs; their threads end with them. Returns whether they
    /// are new to the process.
    pub(super) fn take_over(&mut self, settings: &Arc<ActorSettings>) -> std::io::Result<bool> {
        let are_new = self.boot.process.crew.take_over(settings)?;
        for (actor, slots) in self.slots.iter_mut().enumerate() {
            slots.resize(settings.tasks(actor));
        }
        Ok(are_new)
    }

    /// Hands a claimed job to a thread, or lets it wait for one. Fails if its hash cannot be run.
    pub(super) fn start(
        &mut self,
        actor: usize,
        attempt: Attempt,
        given: ReadInputs,
        settings: &ActorSettings,
    ) -> Result<(), InvalidJob> {
        let Attempt { id, claimed_at, queue, job } = attempt;
        let checked = job.and_then(|job| {
            verdict::check_bounds(&job, &self.slots[actor].id)?;
            let timeout = verdict::timeout_of(&job, &settings.job)?;
            Ok((job, given?, timeout))
        });
        let (job, JobInputs { outputs, gone, files }, timeout) = checked?;
        let cancel = Cancel::new();
        let early = self.early_stops.iter().position(|early| *early == id);
        if early.map(|place| self.early_stops.swap_remove(place)).is_some() || is_to_stop(&job) {
            cancel.request(StopReason::Requested);
        }
        let secrets = Secrets::of(&job.spec.env_vars, &settings.redact);
        let traced =
            self.boot.process.of.tracer.as_ref().and_then(|of| TracedAttempt::new(of, &job));
        let traceparent = traced.as_ref().map_or(job.spec.traceparent, |of| Some(of.own));
        let log = self.new_log(&id, traceparent, settings);
        log.secrets.write().add(secrets);
        for id in gone {
            log.remark(&format!(
                "hero: prerequisite {id} is gone with its output: it was deleted, or its retention is over; its \
                 input is null"
            ));
        }
        let run = Arc::new(RunningJob {
            job,
            claimed_at,
            actor,
            shard: self.boot.place,
            boot: self.boots[actor],
            outcomes: self.outcomes.clone(),
            queue,
            inputs: outputs,
            files,
            timeout,
            cancel,
            log,
            traceparent,
            traced,
        });
        // Between shards a job that waits beside a free task would lose it.
        let brief = self.slots[actor].brief().filter(|_| !self.is_shared());
        self.boot.process.crew.workers[actor].handover().run(&run, brief);
        self.slots[actor].job_started();
        job_log_lines::started(&run, &self.slots[actor].id);
        self.running.insert(id, run);
        Ok(())
    }

    pub(super) fn new_log(
        &self,
        id: &JobId,
        trace: Option<TraceParent>,
        settings: &ActorSettings,
    ) -> LogBuffer {
        let job = &settings.job;
        let mut log = LogBuffer::new(job.log_size_max, Arc::clone(&self.log_written));
        log.is_live = job.live_output;
        log.to_journal = job.log_to_journal.then(|| (id.clone(), trace));
        log.requests = Requests::new(Arc::clone(&self.asked));
        log
    }

    /// Frees the slot of a job that ended, and decides how its attempt is recorded and counted. `None`
    /// if it is not, or the job is unknown.
    pub(super) fn end(
        &mut self,
        RunOutcome { run, result, took }: RunOutcome,
        settings: &ActorSettings,
    ) -> Option<(Verdict, Counts)> {
        self.running.remove(&run.job.id)?;
        let slots = &mut self.slots[run.actor];
        slots.job_ended(took);
        let failure = result.as_ref().err().cloned();
        let dead_letters = settings.dead_letters(&slots.id.script_type);
        let verdict =
            verdict::decide(&run.job, result, &settings.job, dead_letters, fastrand::f64());
        if let Some(Verdict::Retry { error, delay, .. }) = &verdict {
            run.log.mark(&verdict::told(run.job.attempt, error, *delay));
        }
        job_log_lines::ended(&run, &slots.id, failure.as_ref(), verdict.as_ref(), took);
        if let (Some(tracer), Some(traced)) = (&self.boot.process.of.tracer, &run.traced) {
            traced.end(tracer, &run, &slots.id, failure.as_ref(), took);
        }
        let verdict = verdict?;
        let waited = job_log_lines::waited(&run.job);
        let counts = verdict::counts_of_attempt(waited, took, failure.as_ref(), &verdict);
        Some((verdict, counts))
    }

    /// Stops a job on request. Returns `false` if it does not run here.
    pub(super) fn stop(&self, id: &JobId) -> bool {
        let run = self.running.get(id);
        run.inspect(|run| run.cancel.request(StopReason::Requested)).is_some()
    }

    /// Stops a job as soon as it starts.
    pub(super) fn stop_early(&mut self, id: JobId) {
        if self.early_stops.len() < EARLY_STOPS_MAX {
            self.early_stops.push(id);
        }
    }

    pub(super) fn take_asked(&self) -> Vec<RunningRequest> {
        let running = self.running.values();
        let taken = running.filter_map(|run| Some((run, run.log.requests.take()?)));
        taken.map(|(run, work)| RunningRequest { run: Arc::clone(run), work }).collect()
    }

    /// Notifies a session of a call. The script of one that has just been claimed finds the call by itself.
    pub(super) fn call_came(&self, id: &JobId) {
        self.running.get(id).into_iter().for_each(|run| run.log.requests.call_came());
    }

    /// Claims no more jobs, and ends the sessions, each after the call that it serves.
    pub(super) fn drain(&mut self) {
        self.slots.iter_mut().for_each(|slots| slots.drain(true));
        let sessions = self.running.values();
        sessions.for_each(|run| run.log.requests.end_calls("its actor shuts down"));
    }

    pub(super) fn stop_all(&self, reason: StopReason) {
        for run in self.running.values() {
            run.cancel.request(reason);
        }
    }

    /// Takes back the jobs that wait for a thread: all, or the jobs of actors where one has waited for too
    /// long.
    pub(super) fn take_waiting(&mut self, now: Instant, all: bool) -> Vec<ReturnedAttempt> {
        let mut back = Vec::new();
        for (slots, workers) in self.slots.iter_mut().zip(&self.boot.process.crew.workers) {
            let mut handover = workers.handover();
            let since = handover.waiting_since(self.boot.place);
            if since.is_some_and(|since| all || now.duration_since(since) >= AHEAD_WAIT) {
                slots.claim_none_ahead();
                for run in handover.take_waiting(self.boot.place) {
                    slots.job_left();
                    self.running.remove(&run.job.id);
                    back.push(given_back(&run, false));
                }
            }
        }
        back
    }

    /// Returns when [`Jobs::take_waiting`] has something to do.
    pub(super) fn take_waiting_at(&self) -> Option<Instant> {
        let workers = self.boot.process.crew.workers.iter();
        let since = workers.filter_map(|one| one.handover().waiting_since(self.boot.place)).min();
        since.map(|since| since + AHEAD_WAIT)
    }

    /// Returns when a job has waited beside free threads for long enough to get one.
    pub(super) fn spread_at(&self) -> Option<Instant> {
        let workers = self.boot.process.crew.workers.iter();
        workers.filter_map(|one| one.handover().spread_at(self.boot.place)).min()
    }

    /// Updates the slots that depend on the time and on the load of the machine, and wakes threads for jobs
    /// that have waited beside free ones.
    pub(super) fn update_slots(&mut self, now: Instant, is_overloaded: bool) {
        let workers = self.boot.process.crew.workers.iter();
        workers.for_each(|workers| workers.handover().spread(self.boot.place, now));
        for slots in &mut self.slots {
            slots.set_overloaded(is_overloaded);
            slots.retry_broken(now);
        }
    }
}

/// Returns whether a job was asked to stop in an earlier attempt, which nobody could act on.
fn is_to_stop(job: &Job) -> bool {
    job.extra.get("stop_requested").is_some_and(|mark| !mark.is_empty())
}

/// Returns what gives an attempt back to its queue.
pub(super) fn given_back(run: &RunningJob, has_begun: bool) -> ReturnedAttempt {
    ReturnedAttempt { has_begun, ..not_begun(run.attempt(), Some(run.queue.clone())) }
}

/// Returns the same of an attempt that no thread has begun.
pub(super) fn not_begun((id, claimed_at): (JobId, u64), queue: Option<Queue>) -> ReturnedAttempt {
    ReturnedAttempt { id, claimed_at, queue, has_begun: false, has_crashed: false }
}
