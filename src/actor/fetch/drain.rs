//! The way out, in order: take nothing more, let jobs end up to one deadline, give back what is
//! left, stop it, and only then leave.

use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::Fetch;
use super::errand::Errand;
use crate::engine::StopReason;
use crate::proto::report::{Report, Shutdown};

/// What scripts that were stopped, and a Redis that is away, get beyond their deadline.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(3);

/// How far it has come.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// A control message asked for it.
    requested: bool,
    /// How urgent it is, as last seen.
    urgency: Shutdown,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy)]
enum Stage {
    #[default]
    Serving,
    /// Jobs may end until then.
    LettingEnd(Instant),
    /// What is left is being given back; stopped at the latest then.
    GivingBack(Instant),
    /// Everything was told to stop, and has until then.
    Stopping(Instant),
}

impl Drain {
    /// A control message asked for the shutdown.
    pub(super) fn requested(&mut self) {
        self.requested = true;
    }

    /// Redis has taken the jobs back: they may be stopped now.
    pub(super) fn given_back(&mut self) {
        if let Stage::GivingBack(until) = &mut self.stage {
            *until = Instant::now();
        }
    }

    /// Whether what runs is being given back, or was: nothing new may begin.
    pub(super) fn gives_back(&self) -> bool {
        matches!(self.stage, Stage::GivingBack(_) | Stage::Stopping(_))
    }

    /// Whether the process is on its way out.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Serving)
    }

    /// When the present stage ends by itself, or gives up on what kept it from ending.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let until = match self.stage {
            Stage::Serving => return None,
            Stage::LettingEnd(until) | Stage::GivingBack(until) | Stage::Stopping(until) => until,
        };
        Some(if now < until { until } else { until + LAST_WORDS })
    }
}

impl Fetch {
    /// Goes on with the shutdown, if one was asked for, by as many stages as are due.
    pub(super) fn drain_as_asked(&mut self, asked: Shutdown) {
        let now = Instant::now();
        if matches!(self.drain.stage, Stage::Serving) {
            if asked == Shutdown::No && !self.drain.requested {
                return;
            }
            for slots in &mut self.slots {
                slots.drain(true);
            }
            self.drain.stage = Stage::LettingEnd(now + self.settings.actor.drain_timeout);
            info!(jobs = self.running.len(), "shuts down: letting running jobs end");
            self.report_stopping();
        }
        if asked == Shutdown::Now && self.drain.urgency != Shutdown::Now {
            self.drain.urgency = Shutdown::Now;
            if let Stage::LettingEnd(until) = &mut self.drain.stage {
                *until = now;
            }
        }
        if let Stage::LettingEnd(until) = self.drain.stage
            && now >= until
            && !self.running.is_empty()
        {
            self.give_back_the_rest(now);
        }
        if let Stage::GivingBack(until) = self.drain.stage
            && now >= until
        {
            for running in self.running.values() {
                running.cancel.request(StopReason::Shutdown);
            }
            self.drain.stage = Stage::Stopping(now + self.settings.job.kill_grace + LAST_WORDS);
        }
    }

    fn give_back_the_rest(&mut self, now: Instant) {
        let jobs: Vec<_> = self
            .running
            .iter()
            .map(|(id, running)| (id.clone(), Some(running.queue.clone())))
            .collect();
        info!(jobs = jobs.len(), "the deadline has passed: giving jobs back to their queues");
        self.errands.push_front(Errand::GiveBack(jobs));
        self.drain.stage = Stage::GivingBack(now + LAST_WORDS);
        self.report_stopping();
    }

    /// Whether there is nothing left to do, or no time left to do it in.
    pub(super) fn is_over(&self) -> bool {
        let at_rest = self.running.is_empty()
            && self.endings.is_empty()
            && self.errands.is_empty()
            && self.popped.is_empty()
            && self.claiming.is_none()
            && self.erranding.is_none()
            && !self.waiting_for_work
            && !self.unsure;
        let late = |until: Instant| Instant::now() >= until;
        match self.drain.stage {
            Stage::Serving => false,
            // Nothing runs; what keeps it from rest is a Redis that is away. Ends that wait to be
            // recorded are worth the whole deadline.
            Stage::LettingEnd(until) => {
                let hopeless = self.endings.is_empty() && self.redis_away_for(LAST_WORDS);
                at_rest || self.running.is_empty() && (hopeless || late(until + LAST_WORDS))
            }
            Stage::GivingBack(_) => at_rest,
            Stage::Stopping(until) => {
                if late(until) && !at_rest {
                    warn!(
                        jobs = self.running.len() + self.endings.len(),
                        "leaves without having recorded everything: the jobs run again once the lease is over"
                    );
                }
                at_rest || late(until)
            }
        }
    }

    fn redis_away_for(&self, least: Duration) -> bool {
        self.life.vitals.away_since().is_some_and(|since| since.elapsed() >= least)
    }

    fn report_stopping(&self) {
        let line = format!("draining, {} jobs still run", self.running.len());
        let within =
            self.settings.actor.drain_timeout + self.settings.job.kill_grace + 3 * LAST_WORDS;
        (self.life.report)(Report::Stopping { status: line, within });
    }
}
