//! The Lua scripts, as functions of the state. Each does in one step what the script of its name does.

use crate::state::{Boot, BootId, CRASH_LIMIT, Id, Lease, Produced, State, Status};

/// A part of the protocol that can be left out, to see what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A boot without a lease claims nothing.
    FenceOfClaims,
    /// An end is recorded only while the job is in the running set of the boot.
    FenceOfEnds,
    /// A state is kept only while the job is in the running set of the boot.
    FenceOfStates,
    /// A claim takes ids alone that have a ready entry.
    ReadyEntry,
    /// A claim that leaves ready jobs behind passes the token on.
    PassOn,
    /// The bell looks at all lists when it is hung.
    LookAtStart,
    /// Adoption of jobs that programs pushed with plain commands, everywhere.
    Adoption,
    /// The field `leftover` of a job that a foreign actor has popped and may put back.
    Leftover,
    /// The sweep for what foreign actors popped.
    PopRepair,
    /// A boot whose lease has run out is declared dead.
    BootRepair,
}

/// A claim of a boot without a lease.
pub(crate) struct Fenced;

/// The answer to a claim.
pub(crate) enum Claimed {
    /// A job.
    Job(Id),
    /// The list has none.
    Nothing,
    /// The first id of the list has no ready entry.
    Unadopted,
}

/// The settings of a search, which no step changes.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// The jobs that come by plain commands; the others come by `submit`.
    pub raw: [bool; 3],
    /// The part that is left out.
    pub without: Option<Part>,
}

/// The prerequisite of a job.
pub(crate) fn prerequisite(id: Id) -> Option<Id> {
    (id == 1).then_some(0)
}

impl Protocol {
    /// Returns whether this part is there.
    pub fn has(&self, part: Part) -> bool {
        self.without != Some(part)
    }

    fn may_own(s: &State, boot: BootId) -> bool {
        s.boots[boot].lease != Lease::Gone || !s.boots[boot].running.is_empty()
    }

    fn mark_leftover(&self, s: &mut State, id: Id) {
        if self.has(Part::Leftover) {
            s.jobs[id].leftover = true;
        }
    }

    fn push_back(s: &mut State, id: Id) {
        let now = s.now();
        s.make_ready(id, now);
        s.list.push(id);
        s.token = true;
    }

    fn push_front(s: &mut State, id: Id) {
        let score = s.before_first();
        s.make_ready(id, score);
        s.list.insert(0, id);
        s.token = true;
    }

    fn dispatch_or_wait(s: &mut State, id: Id) -> Status {
        let before = prerequisite(id).map_or(Status::Finished, |before| s.jobs[before].status);
        let status = match before {
            Status::Finished => Status::Dispatched,
            Status::Absent | Status::Error => Status::Error,
            _ => Status::Waiting,
        };
        s.jobs[id].status = status;
        s.jobs[id].pending = status == Status::Waiting;
        status
    }

    fn end(s: &mut State, id: Id, status: Status) {
        let job = &mut s.jobs[id];
        job.status = status;
        job.owner = None;
        job.ends = (job.ends + 1).min(2);
        for other in 0..s.jobs.len() {
            if prerequisite(other) != Some(id) || !std::mem::take(&mut s.jobs[other].pending) {
                continue;
            }
            if s.jobs[other].status != Status::Waiting {
                continue;
            }
            if status == Status::Finished {
                s.jobs[other].status = Status::Dispatched;
                Self::push_back(s, other);
            } else {
                Self::end(s, other, Status::Error);
            }
        }
    }

    /// `submit.lua`
    pub fn submit(s: &mut State, id: Id) {
        s.jobs[id].produced = Produced::Yes;
        match Self::dispatch_or_wait(s, id) {
            Status::Dispatched => Self::push_back(s, id),
            Status::Error => Self::end(s, id, Status::Error),
            _ => {}
        }
    }

    /// `adopt.lua`
    pub fn adopt(&self, s: &mut State) {
        if !self.has(Part::Adoption) {
            return;
        }
        let ids = std::mem::take(&mut s.list);
        let mut stay: Vec<(Id, bool)> = Vec::new();
        for id in ids {
            let is_ready = s.score(id).is_some();
            let is_copy = stay.iter().any(|(other, _)| *other == id);
            if !is_copy && (is_ready || Self::becomes_ready(s, id)) {
                stay.push((id, !is_ready));
            }
        }
        let mut behind = s.now();
        for (id, is_new) in stay.iter().rev() {
            if *is_new {
                s.make_ready(*id, behind);
                s.token = true;
            } else if let Some(score) = s.score(*id) {
                behind = behind.min(score);
            }
        }
        s.list.extend(stay.into_iter().map(|(id, _)| id));
    }

    /// Returns whether an id without a ready entry stays in its list.
    fn becomes_ready(s: &mut State, id: Id) -> bool {
        let job = &mut s.jobs[id];
        match job.status {
            Status::Finished | Status::Error => {
                let runs_again = !job.leftover;
                if runs_again {
                    (job.status, job.boot, job.crashes) = (Status::Dispatched, None, 0);
                }
                runs_again
            }
            Status::Dispatched => {
                if Self::dispatch_or_wait(s, id) == Status::Error {
                    Self::end(s, id, Status::Error);
                }
                s.jobs[id].status == Status::Dispatched
            }
            Status::Absent | Status::Waiting | Status::Started => false,
        }
    }

    /// `claim.lua`, for one job.
    pub(crate) fn claim(&self, s: &mut State, boot: BootId) -> Result<Claimed, Fenced> {
        if self.has(Part::FenceOfClaims) && !Self::may_own(s, boot) {
            return Err(Fenced);
        }
        while let Some(id) = s.list.first().copied().filter(|_| !s.paused) {
            if s.score(id).is_none() && self.has(Part::ReadyEntry) {
                return Ok(Claimed::Unadopted);
            }
            s.list.remove(0);
            if Self::take(s, boot, id) {
                if s.list.len() > s.ready.len() {
                    s.list.retain(|other| *other != id);
                }
                s.token |= self.has(Part::PassOn) && !s.list.is_empty();
                return Ok(Claimed::Job(id));
            }
        }
        Ok(Claimed::Nothing)
    }

    /// Claims one id, or leaves it out.
    fn take(s: &mut State, boot: BootId, id: Id) -> bool {
        s.unready(id);
        if s.jobs[id].status != Status::Dispatched {
            return false;
        }
        s.broken.order |=
            prerequisite(id).is_some_and(|before| s.jobs[before].status != Status::Finished);
        s.broken.fence_of_claims |= s.boots[boot].lease == Lease::Gone;
        let job = &mut s.jobs[id];
        (job.status, job.boot, job.owner) = (Status::Started, Some(boot), Some(boot));
        s.boots[boot].running.push(id);
        true
    }

    fn disown(s: &mut State, boot: BootId, id: Id) -> bool {
        let running = &mut s.boots[boot].running;
        let before = running.len();
        running.retain(|other| *other != id);
        running.len() < before
    }

    /// `finish.lua`, of a job that has finished. It answers the same whether it is `done` or `lost`:
    /// the actor runs the job no longer.
    pub fn finish(&self, s: &mut State, boot: BootId, id: Id) {
        if !Self::disown(s, boot, id) && self.has(Part::FenceOfEnds) {
            return;
        }
        s.broken.fence_of_ends |= s.jobs[id].owner != Some(boot);
        Self::end(s, id, Status::Finished);
    }

    /// `keep_state.lua`. A state says nothing here but who kept it.
    pub fn keep_state(&self, s: &mut State, boot: BootId, id: Id) {
        if s.boots[boot].running.contains(&id) || !self.has(Part::FenceOfStates) {
            s.broken.fence_of_states |= s.jobs[id].owner != Some(boot);
        }
    }

    /// `requeue.lua`, of all jobs that a boot owns.
    pub fn requeue(s: &mut State, boot: BootId) {
        for id in std::mem::take(&mut s.boots[boot].running).into_iter().rev() {
            let job = &mut s.jobs[id];
            if job.status == Status::Started {
                (job.status, job.boot, job.owner) = (Status::Dispatched, None, None);
                Self::push_front(s, id);
            }
        }
    }

    /// `appear.lua`. Returns the new boot.
    pub fn appear(s: &mut State) -> BootId {
        s.boots.push(Boot { lease: Lease::Held, running: Vec::new() });
        s.boots.len() - 1
    }

    /// `heartbeat.lua`. Returns false if the boot was declared dead.
    pub fn heartbeat(s: &mut State, boot: BootId) -> bool {
        let may = Self::may_own(s, boot);
        if may {
            s.boots[boot].lease = Lease::Held;
        }
        may
    }

    /// `recover_boots.lua`, for one boot.
    pub fn recover_boots(s: &mut State, boot: BootId) {
        s.boots[boot].lease = Lease::Gone;
        for id in std::mem::take(&mut s.boots[boot].running).into_iter().rev() {
            let job = &mut s.jobs[id];
            if job.status != Status::Started || job.boot != Some(boot) {
                continue;
            }
            job.crashes += 1;
            if job.crashes >= CRASH_LIMIT {
                Self::end(s, id, Status::Error);
            } else {
                (job.status, job.boot, job.owner) = (Status::Dispatched, None, None);
                Self::push_front(s, id);
            }
        }
    }

    /// `recover_pops.lua`, after the grace.
    pub fn recover_pops(&self, s: &mut State) {
        let head = s.list.iter().find_map(|id| s.score(*id)).unwrap_or_else(|| s.now());
        if let Some(before) = s.mark {
            let limit = before.min(head);
            let lost: Vec<Id> =
                s.ready.iter().filter(|(score, _)| *score < limit).map(|(_, id)| *id).collect();
            for id in lost.into_iter().rev() {
                if s.jobs[id].status == Status::Dispatched {
                    s.list.insert(0, id);
                    s.token = true;
                    self.mark_leftover(s, id);
                } else {
                    s.unready(id);
                }
            }
        }
        s.mark = Some(head);
    }
}
