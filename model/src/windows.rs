//! The windows of graphs: how many of their jobs run at once, and after how many failures no other starts.

use crate::scripts::{Part, Protocol};
use crate::state::{Id, JOBS, Produced, State, Status};

impl Protocol {
    /// Returns how many jobs may start now; `None` without a limit.
    fn free_slots(&self, s: &State, released: &[Id]) -> Option<usize> {
        let is_stopped = s.graph.stopped && self.has(Part::StopOfClaims);
        let most = if is_stopped { Some(0) } else { self.window?.at_a_time };
        let taken = s.jobs.iter().filter(|job| job.slot).count() + released.len();
        most.map(|most| most.saturating_sub(taken))
    }

    /// `is_held` in `claim_limits.lua`. `released` are jobs that this claim has released and not met yet: each counts
    /// as a slot.
    pub(crate) fn is_held(&self, s: &mut State, id: Id, score: u8, released: &mut Vec<Id>) -> bool {
        released.retain(|other| *other != id);
        let Some(free) = self.free_slots(s, released) else { return false };
        let is_behind = free > 0 && s.held.first().is_some_and(|(first, _)| *first < score);
        if free > 0 && !is_behind {
            return false;
        }
        s.held.push((score, id));
        s.held.sort_unstable();
        if is_behind {
            released.extend(Self::release(s, free));
        }
        true
    }

    /// `take_slots` in `claim_limits.lua`.
    pub(crate) fn take_slot(&self, s: &mut State, id: Id, released: &[Id]) {
        if self.free_slots(s, released).is_some() && self.has(Part::Slots) {
            s.jobs[id].slot = true;
            let free = self.free_slots(s, released).unwrap_or_default();
            Self::release(s, free);
        }
    }

    /// `leave_limits` in `limits.lua`.
    pub(crate) fn leave_slot(&self, s: &mut State, id: Id) {
        if std::mem::take(&mut s.jobs[id].slot) && self.has(Part::Release) {
            Self::release(s, 1);
        }
    }

    /// `release_held` in `limits.lua`: puts the first held jobs into their lists, each at the place of its dispatch.
    fn release(s: &mut State, number: usize) -> Vec<Id> {
        let released: Vec<(u8, Id)> = s.held.drain(..number.min(s.held.len())).collect();
        for (score, id) in &released {
            s.make_ready(*id, *score);
            s.wake(*id);
            let is_later = |other: &Id| s.score(*other).is_some_and(|of_other| of_other > *score);
            let is_of_queue = |other: &Id| s.queue(*other) == s.queue(*id);
            let later = s.list.iter().position(|other| is_of_queue(other) && is_later(other));
            s.list.insert(later.unwrap_or(s.list.len()), *id);
        }
        released.into_iter().map(|(_, id)| id).collect()
    }

    /// `tend_limits.lua`: frees slots of jobs that do not run, and releases a held job to try.
    pub(crate) fn tend_limits(s: &mut State) {
        for job in &mut s.jobs {
            job.slot &= job.status == Status::Started;
        }
        Self::release(s, 1);
    }

    /// `stop_at_failures` in `windows.lua`.
    pub(crate) fn stop_at_failures(&self, s: &mut State) {
        let failures = s.jobs.iter().filter(|job| job.status == Status::Error).count();
        let most = self.window.and_then(|window| window.stop_after);
        if !s.graph.stopped && most.is_some_and(|most| failures >= most) {
            s.graph.stopped = true;
            Self::end_unstarted(s);
        }
    }

    /// `end_unstarted` in `windows.lua`.
    pub(crate) fn end_unstarted(s: &mut State) {
        if s.graph.stopping == 0 {
            s.graph.settling = Some(JOBS);
        }
        s.graph.stopping = (s.graph.stopping + 1).min(2);
    }

    /// `settle.lua` with `stop_graph.lua`: one call ends one job, the last first.
    pub(crate) fn settle(&self, s: &mut State) {
        let Some(before) = s.graph.settling.take() else { return };
        if before == JOBS {
            s.graph.stopping = 1;
        }
        let is_left = |id: &Id| {
            let job = &s.jobs[*id];
            job.produced == Produced::Yes && !job.status.is_end()
        };
        let left: Vec<Id> = (0..before).filter(is_left).collect();
        if let Some(last) = left.last().filter(|last| s.jobs[**last].status != Status::Started) {
            self.stop(s, *last);
        }
        if left.len() > 1 {
            s.graph.settling = left.last().copied();
        } else if std::mem::take(&mut s.graph.stopping) > 1 {
            Self::end_unstarted(s);
        }
    }

    /// `stop_job.lua`, of a job that has not started.
    fn stop(&self, s: &mut State, id: Id) {
        let held = s.held.len();
        s.held.retain(|(_, other)| *other != id);
        s.unready(id);
        let is_dispatched = s.jobs[id].status == Status::Dispatched;
        if is_dispatched && held == s.held.len() && !s.remove_first(id) {
            self.mark_leftover(s, id);
        }
        s.jobs[id].pending = false;
        self.end(s, id, Status::Cancelled);
    }
}
