//! The jobs of this process: the slots of its actors, their threads, and the running jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

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
use crate::proto::target::ActorId;
use crate::store::{Attempt, Counts, GivenBack, Verdict};

/// Outcomes that may wait for the loop; a thread with one more blocks.
const OUTCOMES_MAX: usize = 1024;
/// The longest time that a job which was claimed ahead waits for a thread; then it goes back to its queue,
/// where another actor may take it.
const AHEAD_WAIT: Duration = Duration::from_millis(5);
/// The most stops remembered for jobs whose claim is still being answered.
const EARLY_STOPS_MAX: usize = 1000;

/// The jobs of this process.
pub(super) struct Jobs {
    /// The slots of each actor.
    pub(super) slots: Vec<Slots>,
    /// The running jobs, and those that wait for a thread.
    pub(super) running: HashMap<JobId, Arc<RunningJob>>,
    /// Notified when a running job has written log lines.
    pub(super) log_written: Arc<Notify>,
    workers: Vec<Workers>,
    outcomes: mpsc::Sender<RunOutcome>,
    /// Jobs to be stopped as soon as they start.
    early_stops: Vec<JobId>,
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
        let before = start_workers(&actors, settings, &self.outcomes)?;
        let before = std::mem::replace(&mut self.workers, before);
        for (before, workers) in before.iter().zip(&self.workers) {
            before.take_waiting().iter().for_each(|run| workers.run(run, None));
        }
        for (actor, slots) in self.slots.iter_mut().enumerate() {
            slots.resize(settings.tasks(actor));
        }
        Ok(())
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
            let timeout = verdict::timeout_of(&job, &settings.job)?;
            Ok((job, given?, timeout))
        });
        let (job, JobInputs { outputs, files }, timeout) = checked?;
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
        self.workers[actor].run(&run, self.slots[actor].brief());
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
        slots.job_ended(took);
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

    /// Returns the running jobs, to be given back.
    pub(super) fn to_give_back(&self) -> Vec<GivenBack> {
        self.running.values().map(|run| given_back(run, true)).collect()
    }

    /// Takes back the jobs that wait for a thread, all or those of actors where one has waited for too
    /// long.
    pub(super) fn take_waiting(&mut self, now: Instant, all: bool) -> Vec<GivenBack> {
        let mut back = Vec::new();
        for (slots, workers) in self.slots.iter_mut().zip(&self.workers) {
            let since = workers.waiting_since();
            if since.is_some_and(|since| all || now.duration_since(since) >= AHEAD_WAIT) {
                slots.claim_none_ahead();
                for run in workers.take_waiting() {
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
        let since = self.workers.iter().filter_map(Workers::waiting_since).min();
        since.map(|since| since + AHEAD_WAIT)
    }

    /// Returns when a job has waited beside free threads for long enough to get one.
    pub(super) fn spread_at(&self) -> Option<Instant> {
        self.workers.iter().filter_map(Workers::spread_at).min()
    }

    /// Updates the slots that depend on the time and on the load of the machine, and wakes threads for jobs
    /// that have waited beside free ones.
    pub(super) fn update_slots(&mut self, now: Instant, is_overloaded: bool) {
        self.workers.iter().for_each(|workers| workers.spread(now));
        for slots in &mut self.slots {
            slots.set_overloaded(is_overloaded);
            slots.retry_broken(now);
        }
    }
}

/// Returns what gives an attempt back to its queue.
pub(super) fn given_back(run: &RunningJob, has_begun: bool) -> GivenBack {
    let (id, claimed_at) = run.attempt();
    GivenBack { id, claimed_at, queue: Some(run.queue.clone()), has_begun }
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
