//! The jobs of this process: the slots of its actors, their threads, and the running jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Notify, mpsc};
use tracing::error;

use super::inputs::{JobInputs, ReadInputs};
use super::slots::Slots;
use crate::actor::boot::Boot;
use crate::actor::log_buffer::LogBuffer;
use crate::actor::secret_store::SecretStore;
use crate::actor::secrets::Secrets;
use crate::actor::settings::ActorSettings;
use crate::actor::workers::{RunOutcome, RunningJob, Workers};
use crate::actor::{counts, story, verdict};
use crate::config::JobConfig;
use crate::engine::{Cancel, StopReason};
use crate::proto::job::{InvalidJob, JobId};
use crate::proto::queue::Queue;
use crate::proto::target::ActorId;
use crate::store::{Attempt, Counts, Verdict};

/// Outcomes that may wait for the loop; a thread with one more blocks.
const OUTCOMES_MAX: usize = 1024;
/// The most stops remembered for jobs whose claim is still being answered.
const EARLY_STOPS_MAX: usize = 1000;

/// The jobs of this process.
pub(super) struct Jobs {
    /// The slots of each actor.
    pub(super) slots: Vec<Slots>,
    /// The running jobs.
    pub(super) running: HashMap<JobId, Arc<RunningJob>>,
    /// Notified when a running job has written log lines.
    pub(super) log_written: Arc<Notify>,
    workers: Vec<Workers>,
    outcomes: mpsc::Sender<RunOutcome>,
    /// Jobs to be stopped as soon as they start.
    early_stops: Vec<JobId>,
}

/// Why a claimed job does not run.
pub(super) enum NotStarted {
    /// Its hash cannot be run.
    Invalid(InvalidJob),
    /// All threads are busy, or the process is shutting down.
    NoThread,
}

impl Jobs {
    /// Starts the threads. Returns the channel of their outcomes.
    pub(super) fn new(
        boot: &Boot,
        settings: &ActorSettings,
    ) -> std::io::Result<(Self, mpsc::Receiver<RunOutcome>)> {
        let (sender, outcomes) = mpsc::channel(OUTCOMES_MAX);
        let slots = |(actor, id): (usize, &ActorId)| {
            let legacy = boot.store.legacy_lists(id);
            Slots::new(id.clone(), settings.tasks(actor), boot.store.keys(), legacy)
        };
        let jobs = Self {
            slots: boot.actors.iter().enumerate().map(slots).collect(),
            running: HashMap::new(),
            log_written: Arc::default(),
            workers: start_workers(&boot.actors, settings, &sender)?,
            outcomes: sender,
            early_stops: Vec::new(),
        };
        Ok((jobs, outcomes))
    }

    /// Takes over new settings. Running jobs keep theirs; their threads end with them.
    pub(super) fn take_over(&mut self, settings: &ActorSettings) -> std::io::Result<()> {
        let actors: Vec<ActorId> = self.slots.iter().map(|slots| slots.id.clone()).collect();
        self.workers = start_workers(&actors, settings, &self.outcomes)?;
        for (actor, slots) in self.slots.iter_mut().enumerate() {
            slots.resize(settings.tasks(actor));
        }
        Ok(())
    }

    /// Hands a claimed job to a thread.
    pub(super) fn start(
        &mut self,
        actor: usize,
        attempt: Attempt,
        given: ReadInputs,
        settings: &ActorSettings,
    ) -> Result<(), NotStarted> {
        let Attempt { id, claimed_at, queue, job } = attempt;
        let checked = job.and_then(|job| {
            let timeout = verdict::timeout_of(&job, &settings.job)?;
            Ok((job, given?, timeout))
        });
        let (job, JobInputs { outputs, files }, timeout) = checked.map_err(NotStarted::Invalid)?;
        let cancel = Cancel::new();
        if let Some(place) = self.early_stops.iter().position(|early| *early == id) {
            self.early_stops.swap_remove(place);
            cancel.request(StopReason::Requested);
        }
        let secrets = Secrets::of(&job.spec.env_vars, &settings.redact);
        let log = self.new_log(&id, settings).hiding(secrets);
        let inputs = outputs;
        let run = RunningJob { job, claimed_at, actor, queue, inputs, files, timeout, cancel, log };
        let run = Arc::new(run);
        if !self.workers[actor].run(&run) {
            error!(job_id = %id, "all threads are busy: giving the claimed job {id} back");
            return Err(NotStarted::NoThread);
        }
        self.slots[actor].job_started();
        story::started(&run, &self.slots[actor].id);
        self.running.insert(id, run);
        Ok(())
    }

    /// Creates the log of a job.
    pub(super) fn new_log(&self, id: &JobId, settings: &ActorSettings) -> LogBuffer {
        let job = &settings.job;
        let log = LogBuffer::new(job.log_size_max, Arc::clone(&self.log_written))
            .with_output(job.live_output);
        if job.log_to_journal { log.also_to_journal(id.clone()) } else { log }
    }

    /// Frees the slot of a job that ended, and decides how its attempt is recorded and counted. `None`
    /// if it is not, or the job is unknown.
    pub(super) fn end(
        &mut self,
        RunOutcome { run, result, took }: RunOutcome,
        config: &JobConfig,
    ) -> Option<(Verdict, Counts)> {
        self.running.remove(&run.job.id)?;
        let slots = &mut self.slots[run.actor];
        slots.job_ended();
        let failure = result.as_ref().err().cloned();
        let verdict = verdict::decide(&run.job, result, config, fastrand::f64());
        story::ended(&run, &slots.id, failure.as_ref(), verdict.as_ref(), took);
        let verdict = verdict?;
        let counts = counts::of_attempt(story::waited(&run.job), took, failure.as_ref(), &verdict);
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

    /// Stops all running jobs.
    pub(super) fn stop_all(&self, reason: StopReason) {
        for run in self.running.values() {
            run.cancel.request(reason);
        }
    }

    /// Returns the running jobs with their queues.
    pub(super) fn queues(&self) -> Vec<(JobId, Option<Queue>)> {
        self.running.iter().map(|(id, run)| (id.clone(), Some(run.queue.clone()))).collect()
    }

    /// Updates the slots that depend on the time and on the load of the machine.
    pub(super) fn update_slots(&mut self, now: Instant, is_overloaded: bool) {
        for slots in &mut self.slots {
            slots.set_overloaded(is_overloaded);
            slots.retry_broken(now);
        }
    }
}

fn start_workers(
    actors: &[ActorId],
    settings: &ActorSettings,
    outcomes: &mpsc::Sender<RunOutcome>,
) -> std::io::Result<Vec<Workers>> {
    let start = |(actor, id): (usize, &ActorId)| {
        let engine = settings.engines.get(&id.script_type).ok_or(std::io::ErrorKind::NotFound)?;
        let secrets = SecretStore::new(&settings.secrets, id);
        Workers::start(settings.tasks(actor), engine, &settings.job.log_dir, &secrets, outcomes)
    };
    actors.iter().enumerate().map(start).collect()
}
