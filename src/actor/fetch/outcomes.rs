//! The ends of attempts as their threads saw them.

use std::sync::Arc;
use std::time::Instant;

use super::Fetch;
use super::background_calls::BackgroundCall;
use super::jobs::given_back;
use crate::actor::heartbeat::check_overload;
use crate::actor::running_job::RunOutcome;
use crate::engine::{Failure, StopReason};
use crate::store::ReturnedAttempt;

impl Fetch {
    /// Takes an outcome, and all others that have come.
    pub(super) fn on_outcomes(&mut self, first: RunOutcome) {
        let mut next = Some(first);
        while let Some(outcome) = next.map(RunOutcome::with_latest_reason) {
            if let Some(outcome) = self.unit_signals.sort(outcome, Instant::now()) {
                self.on_outcome(outcome);
            }
            next = self.outcomes.try_recv().ok();
        }
    }

    /// Takes the outcomes that have waited for a signal of this process.
    pub(super) fn take_settled(&mut self) {
        for outcome in self.unit_signals.settled(Instant::now()) {
            self.on_outcome(outcome);
        }
    }

    fn on_outcome(&mut self, outcome: RunOutcome) {
        let run = Arc::clone(&outcome.run);
        let lack = match &outcome.result {
            Err(Failure::Machine { message }) => Some((message.clone(), false)),
            Err(Failure::Killed { message, .. }) => Some((message.clone(), true)),
            Err(Failure::Stopped(StopReason::Shutdown)) if run.job.session == 0 => {
                self.calls.give_back_ended(&run);
                None
            }
            _ => None,
        };
        let ended = self.jobs.end(outcome, &self.settings);
        if let Some((message, has_crashed)) = lack {
            // Claims no jobs for a while.
            self.boot.health.set_shortage(&message);
            check_overload(&self.boot);
            if ended.is_none() {
                // What the machine could not start has not begun.
                let back = ReturnedAttempt { has_crashed, ..given_back(&run, has_crashed) };
                self.calls.push(BackgroundCall::GiveBack(vec![back]));
            }
        }
        if let Some(ended) = ended {
            let script_type = self.jobs.slots[run.actor].id.script_type.clone();
            self.recording.add(run.attempt(), script_type, ended, &run.log);
        }
    }
}
