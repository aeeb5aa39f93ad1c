//! The fetch loop of one shard: claims jobs for the free slots of this process, hands them to their
//! threads, and records how they ended. It waits only when its queues are empty.
//!
//! Each part has its own state and returns [`Action`]s, which the loop applies. At most one claim,
//! one record of ends, one of log lines, one background call and one wait are under way; all but the wait
//! share a connection and go out in one write when they are due together.

mod action;
mod background_calls;
mod children;
mod claiming;
mod draining;
mod ending;
mod held_replies;
mod inputs;
mod jobs;
mod legacy;
mod pending;
mod recording;
mod retry;
mod script_requests;
mod selector_reads;
mod selectors;
mod sharing;
mod slots;
mod timer;
mod unit_signals;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use tracing::{debug, error, info, warn};

use super::boot::Boot;
use super::running_job::RunOutcome;
use super::settings::ActorSettings;
use super::verdict;
use crate::engine::StopReason;
use crate::proto::job::JobId;
use crate::proto::message::Control;
use crate::proto::report::Shutdown;
use crate::store::{Attempt, START_PATIENCE};
use action::Action;
use background_calls::{BackgroundCall, BackgroundCalls, CallResult, Done};
use claiming::Claiming;
use draining::Draining;
use inputs::ReadInputs;
use jobs::{Jobs, not_begun};
use legacy::LegacyWatch;
use recording::Recording;
use retry::Retry;
use selectors::Selectors;
use unit_signals::UnitSignals;
use waiting::QueueWait;

pub(super) struct Fetch {
    boot: Arc<Boot>,
    /// The settings that this loop has taken over.
    settings: Arc<ActorSettings>,
    changes: watch::Receiver<Arc<ActorSettings>>,
    outcomes: mpsc::Receiver<RunOutcome>,
    /// The actors of the process that are drained.
    drained: watch::Receiver<Vec<bool>>,
    jobs: Jobs,
    claiming: Claiming,
    recording: Recording,
    waiting: QueueWait,
    calls: BackgroundCalls,
    draining: Draining,
    legacy: LegacyWatch,
    retry: Retry,
    unit_signals: UnitSignals,
    selectors: Selectors,
    /// When to look again at lists whose jobs may be with an old worker.
    looks_again_at: Option<Instant>,
}

impl Fetch {
    pub(super) fn new(boot: &Arc<Boot>) -> std::io::Result<Self> {
        let mut changes = boot.settings.clone();
        let settings = Arc::clone(&changes.borrow_and_update());
        let (jobs, outcomes) = Jobs::new(boot, &settings)?;
        let mut fetch = Self {
            settings,
            changes,
            outcomes,
            drained: boot.process.drained(),
            claiming: Claiming::new(boot),
            recording: Recording::new(boot),
            waiting: QueueWait::new(&boot.store),
            calls: BackgroundCalls::default(),
            draining: Draining::default(),
            legacy: LegacyWatch::start(&boot.store, &jobs.slots),
            retry: Retry::new(boot),
            unit_signals: UnitSignals::default(),
            selectors: Selectors::new(&jobs.slots),
            looks_again_at: None,
            jobs,
            boot: Arc::clone(boot),
        };
        fetch.follow_drains();
        Ok(fetch)
    }

    /// Turns until the process was asked to shut down and has.
    pub(super) async fn run(&mut self, shutdown: &mut watch::Receiver<Shutdown>) {
        self.obey_earlier_messages().await;
        loop {
            self.boot.health.loop_turned();
            let asked = *shutdown.borrow_and_update();
            self.advance_shutdown(asked);
            self.unit_signals.shutdown_asked(asked, Instant::now());
            self.take_settled();
            if self.is_over() {
                return;
            }
            self.begin();
            let timer = self.next_timer();
            let sleep = sleep_until(timer.unwrap_or_else(Instant::now).into());
            tokio::select! {
                Some(outcome) = self.outcomes.recv() => self.on_outcomes(outcome),
                end = self.claiming.next() => {
                    let Self { jobs, recording, .. } = self;
                    let is_known = |id: &_| jobs.running.contains_key(id) || recording.holds(id);
                    let actions = self.claiming.done(end, &mut jobs.slots, is_known);
                    self.apply_all(actions);
                }
                end = self.recording.next() => {
                    let action = self.recording.done(end, &self.jobs.running);
                    self.apply(action);
                }
                end = self.waiting.wait.next() => {
                    let actions = self.waiting.done(end, &mut self.jobs.slots);
                    self.apply_all(actions);
                }
                end = self.calls.under_way.next() => self.on_call_result(end),
                (actor, list) = self.legacy.next() => self.calls.adopt(actor, vec![list]),
                () = self.jobs.log_written.notified() => self.recording.log_written(),
                () = self.jobs.asked.notified() => self.calls.keep(self.jobs.take_asked()),
                () = sleep, if timer.is_some() => {}
                _ = shutdown.changed() => {}
                () = self.boot.health.overload_changed.notified() => {}
                () = self.jobs.task_kept.notified() => {}
                Ok(()) = self.changes.changed() => self.take_over_settings(),
                Ok(()) = self.drained.changed() => self.follow_drains(),
            }
            self.update_health();
        }
    }

    /// Starts the calls that are due.
    fn begin(&mut self) {
        let now = Instant::now();
        // Nothing may be written by a boot whose jobs may belong to another. The heartbeat finds
        // out.
        if self.retry.is_waiting(now) || self.boot.health.lease_in_doubt() {
            self.leave_tasks(now);
            return;
        }
        if self.looks_again_at.is_some_and(|at| at <= now) {
            self.looks_again_at = None;
            self.jobs.slots.iter_mut().for_each(slots::Slots::check_again);
        }
        self.read_due_selectors(now);
        self.jobs.look_at_others();
        self.jobs.update_slots(now, self.boot.health.overload().is_some());
        // Never beside a claim, which could take later jobs of a queue first.
        if !self.claiming.is_claiming() {
            self.calls.give_back(self.jobs.take_waiting(now, false));
        }
        // Before the next record, which it would have to wait for.
        self.claiming.begin_comparison(now, self.recording.is_recording());
        if !self.claiming.is_comparing() {
            self.recording.begin();
        }
        self.recording.begin_flush(now, &self.jobs.running);
        self.recording.replies.begin();
        if !self.recording.is_backed_up() && !self.calls.gives_back() {
            self.claiming.begin(&mut self.jobs, &self.settings);
        }
        self.ask_for_tasks(now);
        let wake = self.waiting.begin(
            now,
            &self.jobs.slots,
            self.claiming.is_claiming(),
            self.draining.has_begun(),
            self.calls.is_full(),
        );
        self.apply_all(wake);
        self.legacy.update(&self.jobs.slots);
        // Last, since the others may have queued one.
        self.calls.begin(&self.boot, self.recording.is_flushing());
    }

    fn apply_all(&mut self, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            self.apply(action);
        }
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Start(actor, attempt, given) => self.start(actor, *attempt, given),
            Action::SetApart(actor, id, claimed_at) => self.set_apart(actor, id, claimed_at),
            Action::Control(actor, message) => self.on_control(actor, &message),
            Action::DrainAll => {
                info!(jobs = self.jobs.running.len(), "shutting down: running jobs may end");
                self.jobs.drain();
                self.report_stopping();
            }
            Action::StopAll => {
                self.calls.give_back(self.jobs.take_waiting(Instant::now(), true));
                let jobs = self.jobs.running.len();
                info!(
                    jobs,
                    "stopping running jobs: they go back to their queues once they have ended"
                );
                self.jobs.stop_all(StopReason::Shutdown);
                self.report_stopping();
            }
            Action::Adopt(actor, lists) => self.calls.adopt(actor, lists),
            Action::Do(call) => self.calls.push(call),
            Action::RedisAnswered => self.retry.answered(),
            Action::RedisFailed(doing, error) => self.retry.failed(doing, &error),
            Action::LeaseLost => self.boot.health.lease_lost.notify_one(),
        }
    }

    /// Hands a claimed job to a thread, or records why it cannot run, or gives it back.
    fn start(&mut self, actor: usize, attempt: Attempt, given: ReadInputs) {
        let (id, claimed_at) = (attempt.id.clone(), attempt.claimed_at);
        // The shutdown gave the others back while this one was being claimed.
        if self.draining.gives_back() && attempt.job.is_ok() {
            return self.calls.give_back(vec![not_begun((id, claimed_at), Some(attempt.queue))]);
        }
        if let Some(end) = attempt.job.as_ref().ok().and_then(verdict::expired) {
            let script_type = self.jobs.slots[actor].id.script_type.clone();
            info!(job_id = %id, script_type = %script_type, "job {id} of {script_type} expired before its start");
            let log = self.jobs.new_log(&id, None, &self.settings);
            return self.recording.add((id, claimed_at), script_type, end, &log);
        }
        if let Err(invalid) = self.jobs.start(actor, attempt, given, &self.settings) {
            let script_type = self.jobs.slots[actor].id.script_type.clone();
            warn!(job_id = %id, script_type = %script_type, "job {id} of {script_type} ends in error, as it cannot run: {invalid}");
            let log = self.jobs.new_log(&id, None, &self.settings);
            self.recording.add((id, claimed_at), script_type, verdict::refuse(&invalid), &log);
        }
    }

    /// Postpones a job whose claims cut the connection to Redis, so that others are claimed.
    fn set_apart(&mut self, actor: usize, id: JobId, claimed_at: u64) {
        let script_type = self.jobs.slots[actor].id.script_type.clone();
        let end = verdict::cuts_connection();
        warn!(job_id = %id, script_type = %script_type, "postpones job {id} of {script_type}: {}", verdict::CUTS_CONNECTION);
        let log = self.jobs.new_log(&id, None, &self.settings);
        log.mark(verdict::CUTS_CONNECTION);
        self.recording.add((id, claimed_at), script_type, end, &log);
    }

    fn on_call_result(&mut self, end: CallResult) {
        match self.calls.done(end) {
            Ok(done) => {
                match done {
                    Done::Finished => {}
                    // Its claim is still being answered, unless it has just ended.
                    Done::StopIsOwn(id) => {
                        if !self.jobs.stop(&id) && !self.recording.holds(&id) {
                            self.jobs.stop_early(id);
                        }
                    }
                    Done::Selectors(read, used) => self.on_selectors(&read, used),
                    Done::Adopted { actor, has_work, look_later } => {
                        if has_work {
                            self.jobs.slots[actor].check_again();
                        } else {
                            // A watcher of a legacy queue rests until the next claim.
                            let pause = if look_later { START_PATIENCE } else { waiting::WAIT };
                            self.looks_again_at = Some(Instant::now() + pause);
                        }
                    }
                }
                self.retry.answered();
            }
            Err(error) => self.retry.failed("doing a background call", &error),
        }
    }

    fn on_control(&mut self, actor: usize, message: &[u8]) {
        let id = self.jobs.slots[actor].id.clone();
        match Control::parse(message) {
            Err(error) => warn!(actor = %id, "dropped a control message: {error}"),
            Ok(Control::Stop { job_id: job }) if self.jobs.stop(&job) => {
                info!(job_id = %job, "stops job {job} on request");
            }
            Ok(Control::Stop { job_id: job }) => self.calls.push(BackgroundCall::PassOnStop(job)),
            Ok(Control::Call { job_id: job }) => self.jobs.call_came(&job),
            Ok(Control::Drain) => {
                if self.boot.process.drain(actor, true) {
                    info!(actor = %id, "drains: claims no more jobs until it is told to resume");
                }
                self.follow_drains();
            }
            Ok(Control::Resume) if self.draining.has_begun() => {
                warn!(actor = %id, "does not resume: it is shutting down");
            }
            Ok(Control::Resume) => {
                if self.boot.process.drain(actor, false) {
                    info!(actor = %id, "resumes");
                }
                self.follow_drains();
            }
            Ok(Control::Shutdown) => {
                info!(actor = %id, "was told to shut down");
                self.boot.process.of.end.send_if_modified(|asked| {
                    let is_first = *asked == Shutdown::No;
                    *asked = (*asked).max(Shutdown::Drain);
                    is_first
                });
            }
            Ok(Control::Wake) => self.jobs.slots[actor].check_again(),
            Ok(Control::Where) => self.read_selectors(&id.script_type),
            Ok(Control::Ping { reply_to: Some(list) }) => {
                self.calls.push(BackgroundCall::Pong(list));
            }
            Ok(Control::Ping { reply_to: None }) => {
                info!(actor = %id, "is live: answers a ping that names no list");
            }
        }
    }

    /// Obeys the messages that came while the actors were down, before any job is claimed. What fails is done later.
    async fn obey_earlier_messages(&mut self) {
        for actor in 0..self.jobs.slots.len() {
            match self.boot.store.actors().take_messages(&self.jobs.slots[actor].id).await {
                Ok(messages) => messages.iter().for_each(|text| self.on_control(actor, text)),
                // The wait reads them, and says what is wrong with the list.
                Err(error) => debug!("{error}"),
            }
        }
        while self.calls.left() > 0 && !self.retry.is_waiting(Instant::now()) {
            self.calls.begin(&self.boot, self.recording.is_flushing());
            let end = self.calls.under_way.next().await;
            self.on_call_result(end);
        }
    }

    /// Starts or ends the draining of actors as a message on any shard asked, and updates their presence at once.
    fn follow_drains(&mut self) {
        let drained = self.drained.borrow_and_update().clone();
        // A shutdown drains all of them for good.
        if self.draining.has_begun() {
            return;
        }
        let slots = self.jobs.slots.iter_mut().zip(drained);
        let changed = slots.filter(|(slots, drained)| slots.draining != *drained);
        let changed = changed.map(|(slots, drained)| slots.drain(drained)).count();
        if changed > 0 {
            self.update_health();
            self.boot.health.presence_changed.notify_one();
        }
    }

    /// Takes over new settings for the jobs that start from now on.
    fn take_over_settings(&mut self) {
        self.unit_signals.hung_up(Instant::now());
        let settings = Arc::clone(&self.changes.borrow_and_update());
        match self.jobs.take_over(&settings) {
            Ok(are_new) => {
                self.settings = settings;
                self.labels_may_differ();
                if are_new {
                    info!("new settings are in force");
                }
            }
            Err(error) => error!("cannot start the threads that new settings ask for: {error}"),
        }
    }

    fn update_health(&self) {
        for (slots, health) in self.jobs.slots.iter().zip(&self.boot.health.actors) {
            health.running.store(slots.running.min(slots.limit()), Ordering::Relaxed);
            health.draining.store(slots.draining, Ordering::Relaxed);
        }
    }
}
