//! The tasks that this loop shares with the loops of other shards. With one shard nothing of it happens.

use std::time::{Duration, Instant};

use super::Fetch;
use super::jobs::Jobs;

/// A claim without an answer keeps tasks from other shards no longer than this. Its jobs run all
/// the same if tasks are free by then, and else go back.
const SLOW: Duration = Duration::from_secs(1);

impl Fetch {
    /// Leaves all tasks that are kept for claims to other shards, as no claim may begin. One under way keeps
    /// its own for a while.
    pub(super) fn leave_tasks(&self, now: Instant) {
        if self.jobs.is_shared() && self.leaves_tasks_at().is_none_or(|at| at <= now) {
            self.jobs.leave_tasks();
        }
    }

    /// Asks for a task where a job may wait that no claim has a task for, and leaves tasks that are of no use.
    pub(super) fn ask_for_tasks(&mut self, now: Instant) {
        if !self.jobs.is_shared() {
            return;
        }
        self.leave_tasks(now);
        let can_claim = !self.claiming.is_claiming()
            && !self.claiming.is_unsure
            && !self.recording.is_backed_up()
            && !self.calls.gives_back();
        self.jobs.want_tasks(can_claim);
    }

    /// Returns when a claim under way leaves the tasks that are kept for it.
    pub(super) fn leaves_tasks_at(&self) -> Option<Instant> {
        let began = self.claiming.claims_since().filter(|_| self.jobs.is_shared());
        began.map(|began| began + SLOW).filter(|_| self.jobs.keeps_tasks())
    }
}

impl Jobs {
    pub(super) fn is_shared(&self) -> bool {
        self.boot.process.crew.shards > 1
    }

    /// Learns how many tasks the other shards use.
    pub(super) fn look_at_others(&mut self) {
        if !self.is_shared() {
            return;
        }
        let workers = &self.boot.process.crew.workers;
        for (slots, workers) in self.slots.iter_mut().zip(workers) {
            slots.others = workers.handover().tasks.others(self.boot.place);
        }
    }

    /// Keeps tasks of an actor for a claim, at most this many. Returns how many.
    pub(super) fn keep_tasks(&self, actor: usize, wanted: usize) -> usize {
        if !self.is_shared() {
            return wanted;
        }
        // A Redis that does not answer keeps no more tasks than it takes to learn that it does again.
        let is_away = self.boot.health.outage.since().is_some();
        let wanted = if is_away { wanted.min(1) } else { wanted };
        self.boot.process.crew.workers[actor].handover().keep(self.boot.place, wanted)
    }

    /// Leaves the tasks that are kept for claims, and wants none.
    pub(super) fn leave_tasks(&self) {
        for workers in &self.boot.process.crew.workers {
            let mut handover = workers.handover();
            handover.want(self.boot.place, false);
            handover.keep(self.boot.place, 0);
        }
    }

    fn keeps_tasks(&self) -> bool {
        let workers = &self.boot.process.crew.workers;
        workers.iter().any(|workers| workers.handover().tasks.keeps(self.boot.place))
    }

    fn want_tasks(&mut self, can_claim: bool) {
        for (slots, workers) in self.slots.iter_mut().zip(&self.boot.process.crew.workers) {
            let mut handover = workers.handover();
            slots.others = handover.tasks.others(self.boot.place);
            handover.want(self.boot.place, can_claim && slots.wants_task());
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.leave_tasks();
    }
}
