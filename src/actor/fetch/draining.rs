//! The shutdown, step by step: claim no more, let jobs end up to a deadline, stop the rest, which go back to
//! their queues once their processes have ended, and only then end. Pure.

use std::time::{Duration, Instant};

use super::action::Action;
use crate::proto::report::Shutdown;

/// The time beyond their deadline that stopped scripts, and calls to Redis, get.
pub(super) const EXTRA: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct Draining {
    urgency: Shutdown,
    stage: DrainStage,
}

#[derive(Debug, Default, Clone, Copy)]
enum DrainStage {
    #[default]
    Serving,
    /// Jobs may end until then.
    LettingEnd(Instant),
    /// Jobs were stopped, and have until then to end and to go back to their queues.
    Stopping(Instant),
}

/// The work that is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub(super) running: usize,
    pub(super) unrecorded: usize,
    /// True if anything else is under way or waits.
    pub(super) other: bool,
    /// The time since Redis stopped answering.
    pub(super) redis_away: Duration,
}

impl Draining {
    /// Returns whether running jobs were stopped and go back to their queues: no job may start.
    pub(super) fn gives_back(&self) -> bool {
        matches!(self.stage, DrainStage::Stopping(_))
    }

    /// Returns whether the process is shutting down.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.stage, DrainStage::Serving)
    }

    /// Returns when the stage ends by itself, or the wait after it.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let until = match self.stage {
            DrainStage::Serving => return None,
            DrainStage::LettingEnd(until) | DrainStage::Stopping(until) => until,
        };
        Some(if now < until { until } else { until + EXTRA })
    }

    /// Goes on with the shutdown, if one was asked for, by as many stages as are due.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        asked: Shutdown,
        running: usize,
        drain_timeout: Duration,
        kill_grace: Duration,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        if let DrainStage::Serving = self.stage {
            if asked == Shutdown::No {
                return actions;
            }
            self.stage = DrainStage::LettingEnd(now + drain_timeout);
            actions.push(Action::DrainAll);
        }
        if asked == Shutdown::Now && self.urgency != Shutdown::Now {
            self.urgency = Shutdown::Now;
            if let DrainStage::LettingEnd(until) = &mut self.stage {
                *until = now;
            }
        }
        if let DrainStage::LettingEnd(until) = self.stage
            && now >= until
            && running > 0
        {
            self.stage = DrainStage::Stopping(now + kill_grace + EXTRA);
            actions.push(Action::StopAll);
        }
        actions
    }

    /// Returns whether the process can end: nothing is left to do, or no time to do it.
    pub(super) fn is_over(&self, now: Instant, rest: Rest) -> bool {
        let nothing_left = rest.running == 0 && rest.unrecorded == 0 && !rest.other;
        match self.stage {
            DrainStage::Serving => false,
            // Only a Redis that is away is waited for, and for unrecorded ends up to the deadline.
            DrainStage::LettingEnd(until) => {
                let is_hopeless = rest.unrecorded == 0 && rest.redis_away >= EXTRA;
                nothing_left || rest.running == 0 && (is_hopeless || now >= until + EXTRA)
            }
            DrainStage::Stopping(until) => nothing_left || now >= until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIMEOUT: Duration = Duration::from_mins(1);

    const NOTHING: Rest =
        Rest { running: 0, unrecorded: 0, other: false, redis_away: Duration::ZERO };

    /// The names of the actions at this time.
    fn advance(draining: &mut Draining, now: Instant, asked: Shutdown, running: usize) -> String {
        let actions = draining.advance(now, asked, running, TIMEOUT, SECOND);
        actions.iter().map(|action| format!("{action:?}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn jobs_may_end_until_the_deadline_and_then_are_stopped_once() {
        let (mut draining, start) = (Draining::default(), Instant::now());
        assert_eq!(advance(&mut draining, start, Shutdown::No, 1), "");
        assert_eq!(advance(&mut draining, start, Shutdown::Drain, 1), "DrainAll");
        assert!(draining.has_begun() && !draining.gives_back());
        assert_eq!(advance(&mut draining, start, Shutdown::Drain, 1), "");
        let late = start + TIMEOUT;
        assert_eq!(draining.deadline(start), Some(late));
        assert_eq!(advance(&mut draining, late, Shutdown::Drain, 1), "StopAll");
        assert!(draining.gives_back());
        assert_eq!(advance(&mut draining, late, Shutdown::Drain, 1), "");
        assert!(!draining.is_over(late, Rest { running: 1, ..NOTHING }));
        let end = late + SECOND + EXTRA;
        assert!(draining.is_over(end, Rest { running: 1, ..NOTHING }), "no time is left");
    }

    #[test]
    fn process_that_has_stopped_its_jobs_ends_once_they_are_given_back() {
        let (mut draining, start) = (Draining::default(), Instant::now());
        let all = "DrainAll StopAll";
        assert_eq!(advance(&mut draining, start, Shutdown::Now, 1), all);
        assert!(!draining.is_over(start, Rest { other: true, ..NOTHING }), "they are going back");
        assert!(draining.is_over(start, NOTHING));
    }

    #[test]
    fn unrecorded_end_waits_for_redis_up_to_the_deadline() {
        let (mut draining, start) = (Draining::default(), Instant::now());
        advance(&mut draining, start, Shutdown::Drain, 0);
        let away = Rest { other: true, redis_away: EXTRA, ..NOTHING };
        assert!(draining.is_over(start, away), "nothing that Redis must know is left");
        let unrecorded = Rest { unrecorded: 1, ..away };
        assert!(!draining.is_over(start, unrecorded));
        assert!(draining.is_over(start + TIMEOUT + EXTRA, unrecorded));
    }
}
