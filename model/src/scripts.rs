//! The Lua scripts, as functions of the state. Each does in one step what the script of its name does.

use crate::state::{Boot, BootId, CRASH_LIMIT, Id, JOBS, Lease, Produced, State, Status};

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
    /// A job that starts takes a slot in the window of its graph.
    Slots,
    /// A job that leaves its slot releases the next held one.
    Release,
    /// A claim starts no job of a stopped graph.
    StopOfClaims,
    /// A claim that meets a job of a stopped graph asks for its end.
    StopAgain,
    /// An actor reads the queues of those expressions alone that its labels match.
    Labels,
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

/// The window of a graph.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// `at_a_time`
    pub at_a_time: Option<usize>,
    /// `stop_after`
    pub stop_after: Option<usize>,
}

/// The settings of a search, which no step changes.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// The jobs that come by plain commands; the others come by `submit`.
    pub raw: [bool; JOBS],
    /// The second job waits for the first.
    pub ordered: bool,
    /// The last job has `where`, which the labels of one actor match.
    pub selective: bool,
    /// All jobs are of one graph with this window, and join it in order.
    pub window: Option<Window>,
    /// The part that is left out.
    pub without: Option<Part>,
}

impl Protocol {
    /// The prerequisite of a job.
    pub(crate) fn prerequisite(&self, id: Id) -> Option<Id> {
        (self.ordered && id == 1).then_some(0)
    }

    /// Returns whether this part is there.
    pub fn has(&self, part: Part) -> bool {
        self.without != Some(part)
    }

    fn may_own(s: &State, boot: BootId) -> bool {
        s.boots[boot].lease != Lease::Gone || !s.boots[boot].running.is_empty()
    }

    pub(crate) fn mark_leftover(&self, s: &mut State, id: Id) {
        if self.has(Part::Leftover) {
            s.jobs[id].leftover = true;
        }
    }

    fn push_back(s: &mut State, id: Id) {
        let now = s.now();
        s.make_ready(id, now);
        s.list.push(id);
        s.has_expression |= s.jobs[id].is_selective;
        s.wake(id);
    }

    fn push_front(s: &mut State, id: Id) {
        let score = s.before_first(s.queue(id));
        s.make_ready(id, score);
        s.list.insert(0, id);
        s.has_expression |= s.jobs[id].is_selective;
        s.wake(id);
    }

    fn dispatch_or_wait(&self, s: &mut State, id: Id) -> Status {
        let before = self.prerequisite(id).map_or(Status::Finished, |before| s.jobs[before].status);
        let status = match before {
            Status::Finished => Status::Dispatched,
            Status::Absent | Status::Error | Status::Cancelled => Status::Error,
            _ => Status::Waiting,
        };
        s.jobs[id].status = status;
        s.jobs[id].pending = status == Status::Waiting;
        status
    }

    pub(crate) fn end(&self, s: &mut State, id: Id, status: Status) {
        let job = &mut s.jobs[id];
        job.status = status;
        job.owner = None;
        job.ends = (job.ends + 1).min(2);
        self.stop_at_failures(s);
        for other in 0..s.jobs.len() {
            if self.prerequisite(other) != Some(id) || !std::mem::take(&mut s.jobs[other].pending) {
                continue;
            }
            if s.jobs[other].status != Status::Waiting {
                continue;
            }
            if status == Status::Finished {
                s.jobs[other].status = Status::Dispatched;
                Self::push_back(s, other);
            } else {
                self.end(s, other, Status::Error);
            }
        }
    }

    /// `submit.lua`
    pub fn submit(&self, s: &mut State, id: Id) {
        s.jobs[id].produced = Produced::Yes;
        if s.graph.stopped {
            Self::end_unstarted(s);
        }
        match self.dispatch_or_wait(s, id) {
            Status::Dispatched => Self::push_back(s, id),
            Status::Error => self.end(s, id, Status::Error),
            _ => {}
        }
    }

    /// `adopt.lua`, for the list of the type: programs push to no other.
    pub fn adopt(&self, s: &mut State) {
        if !self.has(Part::Adoption) {
            return;
        }
        let ids: Vec<Id> = s.list_of(0).collect();
        s.list.drain(..ids.len());
        let mut stay: Vec<(Id, bool)> = Vec::new();
        for id in ids {
            let is_ready = s.score(id).is_some();
            let is_copy = stay.iter().any(|(other, _)| *other == id);
            if !is_copy && (is_ready || self.becomes_ready(s, id)) {
                stay.push((id, !is_ready));
            }
        }
        let mut behind = s.now();
        for (id, is_new) in stay.iter().rev() {
            if *is_new {
                s.make_ready(*id, behind);
                s.wake(*id);
            } else if let Some(score) = s.score(*id) {
                behind = behind.min(score);
            }
        }
        s.list.splice(0..0, stay.into_iter().map(|(id, _)| id));
    }

    /// Returns whether an id without a ready entry stays in its list.
    fn becomes_ready(&self, s: &mut State, id: Id) -> bool {
        match s.jobs[id].status {
            Status::Finished | Status::Error | Status::Cancelled => {
                let job = &mut s.jobs[id];
                let runs_again = !job.leftover;
                if runs_again {
                    (job.status, job.boot, job.crashes) = (Status::Dispatched, None, 0);
                }
                runs_again
            }
            // The window holds it.
            Status::Dispatched if s.is_held(id) => false,
            Status::Dispatched => {
                if self.dispatch_or_wait(s, id) == Status::Error {
                    self.end(s, id, Status::Error);
                }
                s.jobs[id].status == Status::Dispatched
            }
            Status::Absent | Status::Waiting | Status::Started => false,
        }
    }

    /// `claim.lua`, for one job.
    pub(crate) fn claim(&self, s: &mut State, actor: usize) -> Result<Claimed, Fenced> {
        if self.has(Part::FenceOfClaims) && !Self::may_own(s, s.actors[actor].boot) {
            return Err(Fenced);
        }
        let mut claimed = Claimed::Nothing;
        let mut released = Vec::new();
        for queue in s.queues_of(actor).filter(|_| !s.paused).collect::<Vec<_>>() {
            while let Some(id) = s.first(queue) {
                if s.score(id).is_none() && self.has(Part::ReadyEntry) {
                    claimed = Claimed::Unadopted;
                    break;
                }
                s.remove_first(id);
                if self.take(s, actor, id, &mut released) {
                    self.leave_list(s, actor, id);
                    return Ok(Claimed::Job(id));
                }
            }
        }
        Ok(claimed)
    }

    /// The end of `claim.lua`: passes tokens on, and removes other copies of the job.
    fn leave_list(&self, s: &mut State, actor: usize, id: Id) {
        let queue = s.queue(id);
        if s.list_of(queue).count() > s.ready_of(queue).count() {
            s.list.retain(|other| *other != id);
        }
        for queue in s.queues_of(actor) {
            s.tokens[queue] |= self.has(Part::PassOn) && s.first(queue).is_some();
        }
    }

    /// Claims one id, or leaves it out.
    fn take(&self, s: &mut State, actor: usize, id: Id, released: &mut Vec<Id>) -> bool {
        if s.graph.stopped && self.has(Part::StopAgain) {
            Self::end_unstarted(s);
        }
        let score = s.score(id).unwrap_or_else(|| s.now());
        s.unready(id);
        if s.jobs[id].status != Status::Dispatched || self.is_held(s, id, score, released) {
            return false;
        }
        let boot = s.actors[actor].boot;
        let before = self.prerequisite(id).map(|before| s.jobs[before].status);
        s.broken.order |= before.is_some_and(|status| status != Status::Finished);
        s.broken.fence_of_claims |= s.boots[boot].lease == Lease::Gone;
        s.broken.stop |= s.graph.stopped;
        s.broken.labels |= s.jobs[id].is_selective && !s.actors[actor].matches;
        let job = &mut s.jobs[id];
        (job.status, job.boot, job.owner) = (Status::Started, Some(boot), Some(boot));
        s.boots[boot].running.push(id);
        self.take_slot(s, id, released);
        true
    }

    fn disown(s: &mut State, boot: BootId, id: Id) -> bool {
        let running = &mut s.boots[boot].running;
        let before = running.len();
        running.retain(|other| *other != id);
        running.len() < before
    }

    /// `finish.lua`, of a job that has finished, or has failed. It answers the same whether it is `done` or `lost`:
    /// the actor runs the job no longer.
    pub fn finish(&self, s: &mut State, boot: BootId, id: Id, status: Status) {
        if !Self::disown(s, boot, id) && self.has(Part::FenceOfEnds) {
            return;
        }
        s.broken.fence_of_ends |= s.jobs[id].owner != Some(boot);
        self.leave_slot(s, id);
        self.end(s, id, status);
    }

    /// `keep_state.lua`. A state says nothing here but who kept it.
    pub fn keep_state(&self, s: &mut State, boot: BootId, id: Id) {
        if s.boots[boot].running.contains(&id) || !self.has(Part::FenceOfStates) {
            s.broken.fence_of_states |= s.jobs[id].owner != Some(boot);
        }
    }

    /// `requeue.lua`, of all jobs that a boot owns.
    pub fn requeue(&self, s: &mut State, boot: BootId) {
        for id in std::mem::take(&mut s.boots[boot].running).into_iter().rev() {
            self.leave_slot(s, id);
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
    pub fn recover_boots(&self, s: &mut State, boot: BootId) {
        s.boots[boot].lease = Lease::Gone;
        for id in std::mem::take(&mut s.boots[boot].running).into_iter().rev() {
            if s.jobs[id].boot == Some(boot) {
                self.leave_slot(s, id);
            }
            let job = &mut s.jobs[id];
            if job.status != Status::Started || job.boot != Some(boot) {
                continue;
            }
            job.crashes += 1;
            if job.crashes >= CRASH_LIMIT {
                self.end(s, id, Status::Error);
            } else {
                (job.status, job.boot, job.owner) = (Status::Dispatched, None, None);
                Self::push_front(s, id);
            }
        }
    }

    /// `recover_pops.lua`, after the grace.
    pub fn recover_pops(&self, s: &mut State) {
        for queue in 0..=usize::from(s.has_expression) {
            let head = s.list_of(queue).find_map(|id| s.score(id)).unwrap_or_else(|| s.now());
            let limit = s.marks[queue].map_or(0, |before| before.min(head));
            let lost = s.ready_of(queue).take_while(|(score, _)| *score < limit);
            let lost: Vec<_> = lost.filter(|(_, id)| !s.list.contains(id)).collect();
            for (_, id) in lost.into_iter().rev() {
                if s.jobs[id].status == Status::Dispatched {
                    s.list.insert(0, id);
                    s.wake(id);
                    self.mark_leftover(s, id);
                } else {
                    s.unready(id);
                }
            }
            s.marks[queue] = Some(head);
        }
    }
}
