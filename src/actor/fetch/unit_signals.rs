//! Scripts that a signal for the whole unit killed. `systemctl kill`, `pkill -u hero` and the like reach the daemon and its
//! scripts at about the same time, in any order: such a death is no result of the script, and its job goes back to its
//! queue with nothing charged. So the outcome of a script that died by a signal which Hero did not send waits for a moment
//! for the daemon's own signal.

use std::time::{Duration, Instant};

use crate::actor::running_job::RunOutcome;
use crate::engine::{Failure, StopReason};
use crate::proto::job::{AttemptOutcome, JobId};
use crate::proto::report::Shutdown;

/// The time that an outcome waits for the daemon's own signal: each job that ends by such a signal ends later by it.
const WAIT: Duration = Duration::from_millis(200);
/// The time after the daemon's own signal in which an outcome may come: a script whose processes end slowly reports late.
const AFTER: Duration = Duration::from_secs(10);
/// The attempts in a row that may have been given back: a script that kills its own unit again and again is charged.
const GIVEN_BACK_MAX: usize = 3;

/// The signals of the process, and the outcomes that wait for one.
#[derive(Default)]
pub(super) struct UnitSignals {
    asked: Shutdown,
    /// When the daemon got its latest signal.
    own_at: Option<Instant>,
    /// Each with the time until which it waits.
    waiting: Vec<(Instant, RunOutcome)>,
}

impl UnitSignals {
    /// Notes the shutdown that the process was asked for, by a signal or a message.
    pub(super) fn shutdown_asked(&mut self, asked: Shutdown, now: Instant) {
        if std::mem::replace(&mut self.asked, asked) != asked {
            self.own_at = Some(now);
        }
    }

    /// Notes a SIGHUP.
    pub(super) fn hung_up(&mut self, now: Instant) {
        self.own_at = Some(now);
    }

    /// Returns an outcome, unless it has to wait.
    pub(super) fn sort(&mut self, outcome: RunOutcome, now: Instant) -> Option<RunOutcome> {
        if signal_of(&outcome).is_none() {
            return Some(outcome);
        }
        if self.is_signalled(now) {
            return Some(given_back(outcome));
        }
        self.waiting.push((now + WAIT, outcome));
        None
    }

    /// Returns the outcomes that need not wait any more.
    pub(super) fn settled(&mut self, now: Instant) -> Vec<RunOutcome> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        if self.is_signalled(now) {
            return self.waiting.drain(..).map(|(_, outcome)| given_back(outcome)).collect();
        }
        let over = self.waiting.extract_if(.., |(until, _)| *until <= now);
        over.map(|(_, outcome)| outcome).collect()
    }

    fn is_signalled(&self, now: Instant) -> bool {
        self.own_at.is_some_and(|at| now.duration_since(at) <= AFTER)
    }

    /// Returns when the first of them need not wait any more.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.iter().map(|(until, _)| *until).min()
    }

    /// Forgets them, and returns their jobs.
    pub(super) fn take(&mut self) -> Vec<JobId> {
        self.waiting.drain(..).map(|(_, outcome)| outcome.run.job.id.clone()).collect()
    }
}

/// Returns the signal by which a script died that Hero did not send.
fn signal_of(outcome: &RunOutcome) -> Option<i32> {
    let is_of_script = matches!(outcome.result, Err(Failure::Script { exit_code: None, .. }));
    // One that people send to whole units.
    let signal = outcome.run.log.entries().used.and_then(|used| used.unit_signal());
    signal.filter(|_| is_of_script)
}

/// Turns the death of a script with its unit into an attempt that its actor gives back.
fn given_back(mut outcome: RunOutcome) -> RunOutcome {
    let signal = signal_of(&outcome).unwrap_or_default();
    let attempts = outcome.run.job.attempts.iter().rev();
    let before = attempts.take_while(|of| of.ended == AttemptOutcome::ReturnedAttempt).count();
    outcome.result = Err(if before < GIVEN_BACK_MAX {
        outcome.run.log.mark(&format!(
            "the script was killed by signal {signal} together with its actor: it runs again, and nothing is charged"
        ));
        Failure::Stopped(StopReason::Shutdown)
    } else {
        let message = format!(
            "killed by signal {signal} together with its actor, as {before} attempts before"
        );
        Failure::Killed { message, exit_code: None }
    });
    outcome
}
