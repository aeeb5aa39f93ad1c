//! Claims: jobs for free slots, each handed to a thread or, if it cannot be run, ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::errand::Errand;
use super::inputs::{self, InputsOf};
use super::slots::Slots;
use super::{Fetch, Running};
use crate::actor::log_buffer::LogBuffer;
use crate::actor::verdict;
use crate::actor::workers::Task;
use crate::engine::{Cancel, Inputs, StopReason};
use crate::failpoint;
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::proto::target::Queue;
use crate::store::{Attempt, Claim, Claimed, StoreError, Woken};

/// What a hash may have beside its script.
const HASH_MARGIN_BYTES: u64 = 1 << 20;

/// Skipped ids are logged this often at the most.
const SKIP_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// What a claim brought for an actor that asked for so many jobs.
struct Answer {
    actor: usize,
    wanted: usize,
    claimed: Claimed,
    inputs: InputsOf,
}

/// What a round of claims brought.
pub(super) struct Claims {
    answers: Vec<Answer>,
    /// Pops that no claim has taken over, because one before it failed.
    pub(super) popped: Vec<(usize, Woken)>,
    failed: Option<StoreError>,
}

impl Fetch {
    pub(super) fn begin_claiming(&mut self) {
        if self.claiming.is_some() || self.endings.is_backed_up() {
            return;
        }
        // What was popped for an actor that drains by now is for others.
        let (keep, back): (Vec<_>, Vec<_>) = std::mem::take(&mut self.popped)
            .into_iter()
            .partition(|(actor, _)| self.slots[*actor].free() > 0);
        self.popped = keep;
        self.errands.extend(back.into_iter().map(|(_, woken)| Errand::PutBack(woken)));
        let fair_every = self.settings.actor.fair_every;
        let due: Vec<(usize, usize, Vec<String>)> = self
            .slots
            .iter_mut()
            .enumerate()
            .filter(|(_, slots)| slots.wants_claim())
            .map(|(actor, slots)| (actor, slots.free(), slots.lists_to_claim(fair_every)))
            .collect();
        if due.is_empty() {
            return;
        }
        let size_max_bytes = self.settings.job.script_size_max.saturating_add(HASH_MARGIN_BYTES);
        let mut popped = std::mem::take(&mut self.popped);
        let limits = self.settings.limits.clone();
        let life = Arc::clone(&self.life);
        self.claiming = Some(Box::pin(async move {
            let mut answers = Vec::with_capacity(due.len());
            for (actor, wanted, lists) in due {
                let own: Vec<(String, Vec<u8>)> = popped
                    .iter()
                    .filter(|(of, _)| *of == actor)
                    .map(|(_, woken)| (woken.list.clone(), woken.entry.clone()))
                    .collect();
                let claim = Claim {
                    boot: &life.boot,
                    actor: &life.actors[actor],
                    lists: &lists,
                    wanted,
                    popped: &own,
                    size_max_bytes,
                    limits: &limits,
                };
                let claimed = match life.store.claim(&claim).await {
                    Ok(claimed) => claimed,
                    Err(error) => return Claims { answers, popped, failed: Some(error) },
                };
                popped.retain(|(of, _)| *of != actor);
                let job = &life.settings().job;
                match inputs::fetch(&life.store, job, &claimed.attempts).await {
                    Ok(inputs) => answers.push(Answer { actor, wanted, claimed, inputs }),
                    // They are ours, and unknown here: reconciling gives them back.
                    Err(error) => return Claims { answers, popped, failed: Some(error) },
                }
            }
            Claims { answers, popped, failed: None }
        }));
    }

    pub(super) fn on_claims(&mut self, claims: Claims) {
        for Answer { actor, wanted, claimed, mut inputs } in claims.answers {
            if claimed.fenced {
                self.life.vitals.lease_lost.notify_one();
            }
            self.slots[actor].hungry = claimed.more || claimed.attempts.len() >= wanted;
            self.note_void(actor, &claimed);
            if !claimed.fenced && self.slots[actor].pause(claimed.paused) {
                info!(actor = %self.slots[actor].id, paused = self.slots[actor].paused_number(), "queues were paused or go on");
            }
            if !claimed.attempts.is_empty() {
                failpoint::reached(failpoint::AFTER_CLAIM);
            }
            for attempt in claimed.attempts {
                let inputs = inputs.remove(&attempt.id).unwrap_or_else(|| Ok(Inputs::new()));
                self.start(actor, attempt, inputs);
            }
        }
        self.popped.extend(claims.popped);
        match claims.failed {
            // It may have gone through all the same; what it took must not be forgotten.
            Some(error) => {
                self.unsure = true;
                self.redis_failed("claiming jobs", &error);
            }
            None => self.redis_answered(),
        }
    }

    /// Asks which jobs this boot owns, after a claim whose answer never came, and now and then,
    /// since such a claim may lie on its way to Redis for longer than anybody waits.
    pub(super) fn begin_reconciling(&mut self) {
        const OWNED_MAX: usize = 10_000;
        // While endings are on their way, a job of ours may be neither here nor there.
        if self.reconciling.is_some() || self.claiming.is_some() || self.recording.is_some() {
            return;
        }
        let life = Arc::clone(&self.life);
        self.reconciling =
            Some(Box::pin(async move { life.store.running(&life.boot, OWNED_MAX).await }));
    }

    pub(super) fn on_owned(&mut self, owned: Result<Vec<JobId>, StoreError>) {
        match owned {
            Ok(owned) => {
                self.unsure = false;
                self.reconciled_at = Instant::now();
                let unknown: Vec<(JobId, Option<Queue>)> = owned
                    .into_iter()
                    .filter(|id| !self.running.contains_key(id) && !self.endings.holds(id))
                    .map(|id| (id, None))
                    .collect();
                if !unknown.is_empty() {
                    warn!(jobs = unknown.len(), "a claim's answer was lost: giving its jobs back");
                    self.errands.push_back(Errand::GiveBack(unknown));
                }
                self.redis_answered();
            }
            Err(error) => self.redis_failed("reading the jobs of this boot", &error),
        }
    }

    /// Hands a claimed job to a thread, or ends it if it cannot be run.
    fn start(&mut self, actor: usize, attempt: Attempt, inputs: Result<Inputs, InvalidJob>) {
        let Attempt { id, queue, job } = attempt;
        let checked = job.and_then(|job| {
            let timeout = verdict::timeout_of(&job, &self.settings.job)?;
            Ok((job, inputs?, timeout))
        });
        let script_type = self.slots[actor].id.script_type.clone();
        let (job, inputs, timeout) = match checked {
            Ok(checked) => checked,
            Err(invalid) => {
                warn!(job_id = %id, script_type = %script_type, "{invalid}");
                let log = self.new_log(&id);
                self.endings.add(id, script_type, verdict::refuse(&invalid), &log);
                return;
            }
        };
        if self.drain.gives_back() {
            // Its claim was on its way when the others were given back.
            self.errands.push_back(Errand::GiveBack(vec![(id, Some(queue))]));
            return;
        }
        log_start(&job, &self.slots[actor]);
        let cancel = Arc::new(Cancel::new());
        if let Some(place) = self.early_stops.iter().position(|early| *early == id) {
            self.early_stops.swap_remove(place);
            cancel.request(StopReason::Requested);
        }
        let log = Arc::new(self.new_log(&id));
        let task =
            Task { job, inputs, timeout, cancel: Arc::clone(&cancel), log: Arc::clone(&log) };
        if self.workers[actor].run(task).is_ok() {
            self.slots[actor].began();
            self.running.insert(id, Running { actor, queue, cancel, log });
        } else {
            error!(job_id = %id, "no thread is free for a claimed job: giving it back");
            self.errands.push_back(Errand::GiveBack(vec![(id, Some(queue))]));
        }
    }

    fn new_log(&self, id: &JobId) -> LogBuffer {
        let job = &self.settings.job;
        let log = LogBuffer::new(job.log_size_max, Arc::clone(&self.log_written));
        if job.log_to_journal { log.also_to_journal(id.clone()) } else { log }
    }

    /// Counts and, now and then, logs ids that were void, and leaves broken lists alone.
    fn note_void(&mut self, actor: usize, claimed: &Claimed) {
        let now = Instant::now();
        for (list, reason) in &claimed.broken {
            if self.slots[actor].break_off(list, now) {
                error!(key = %list, "cannot read a work queue, and leave it alone for a while: {reason}");
            }
        }
        self.skipped += claimed.skipped;
        let due = self.skips_logged_at.is_none_or(|at| now.duration_since(at) >= SKIP_LOG_INTERVAL);
        if self.skipped > 0 && due {
            let some = claimed
                .skipped_some
                .iter()
                .map(|(id, why)| format!("{}: {why}", id.escape_debug()));
            let some: Vec<String> = some.collect();
            warn!(ids = self.skipped, "skipped ids in work queues: {}", some.join(", "));
            self.skipped = 0;
            self.skips_logged_at = Some(now);
        }
    }
}

fn log_start(job: &Job, slots: &Slots) {
    info!(
        job_id = %job.id,
        script_type = %slots.id.script_type,
        group = %slots.id.group,
        instance = %slots.id.instance,
        attempt = job.attempt,
        caller_id = %job.spec.caller_id,
        context_id = %job.spec.context_id,
        "job started"
    );
}
