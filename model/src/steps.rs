//! The steps: who may do what when, and what it stands for.

use crate::scripts::{Fenced, Part, Protocol, prerequisite};
use crate::state::{ACTORS, BootId, Doing, Id, JOBS, Lease, Produced, State, Status};

/// A step of an actor, a producer, a supervisor, or a fault. Supervisors remember nothing between two
/// calls, so a step of any of them is the same: there may be two, or any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A client submits a job.
    Submit(Id),
    /// A program writes the hash of a job.
    Write(Id),
    /// That program pushes the id.
    Push(Id),
    /// An actor pops an id.
    Pop(usize),
    /// An actor claims a job, the popped one first.
    Claim(usize),
    /// The same, and the answer is lost.
    ClaimUnanswered(usize),
    /// An actor that does not know what it has claimed gives all of it back.
    GiveBack(usize),
    /// An actor records the end of its job.
    Finish(usize),
    /// The same, and the answer is lost: it will send it again.
    FinishUnanswered(usize),
    /// An actor renews its lease, or learns that it is lost.
    Renew(usize),
    /// An actor puts back what it has popped: its lease or the answer to its claim was lost.
    PutBack(usize),
    /// An actor begins a new boot.
    Appear(usize),
    /// A lease runs out.
    Expire(BootId),
    /// A supervisor, or the successor of an actor, declares a boot dead.
    RecoverBoots(BootId),
    /// A supervisor puts back lost pops.
    RecoverPops,
    /// A supervisor adopts jobs in the queue.
    AdoptQueued,
    /// A supervisor finds a job in no queue.
    AdoptUnqueued(Id),
    /// The process of an actor is killed.
    Kill(usize),
    /// An actor stands still.
    Stop(usize),
    /// It goes on.
    Continue(usize),
    /// An operator pauses the queue.
    Pause,
    /// An operator lets the queue go on.
    Resume,
}

/// The script or command that a step stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandsFor {
    /// A Lua script.
    Script(&'static str),
    /// A command of Redis that some program sends by itself.
    Command(&'static str),
    /// An event of a process that does not involve Redis.
    Process(&'static str),
}

/// Every step by its name, with what it stands for.
pub const STEPS: [(&str, StandsFor); 22] = [
    ("Submit", StandsFor::Script("submit")),
    ("Write", StandsFor::Command("HSET")),
    ("Push", StandsFor::Command("RPUSH, or LPUSH for the last job")),
    ("Pop", StandsFor::Command("BLPOP")),
    ("Claim", StandsFor::Script("claim")),
    ("ClaimUnanswered", StandsFor::Script("claim")),
    ("GiveBack", StandsFor::Script("requeue")),
    ("Finish", StandsFor::Script("finish")),
    ("FinishUnanswered", StandsFor::Script("finish")),
    ("Renew", StandsFor::Script("heartbeat")),
    ("PutBack", StandsFor::Script("put_back")),
    ("Appear", StandsFor::Script("appear")),
    ("Expire", StandsFor::Process("time passes")),
    ("RecoverBoots", StandsFor::Script("recover_boots")),
    ("RecoverPops", StandsFor::Script("recover_pops")),
    ("AdoptQueued", StandsFor::Script("adopt_queued")),
    ("AdoptUnqueued", StandsFor::Script("adopt_unqueued")),
    ("Kill", StandsFor::Process("SIGKILL")),
    ("Stop", StandsFor::Process("SIGSTOP")),
    ("Continue", StandsFor::Process("SIGCONT")),
    ("Pause", StandsFor::Script("pause")),
    ("Resume", StandsFor::Script("pause")),
];

impl Protocol {
    /// Appends the steps that are possible in a state.
    pub fn steps(&self, s: &State, steps: &mut Vec<Step>) {
        self.steps_of_producers(s, steps);
        for actor in 0..ACTORS {
            steps_of_actor(s, actor, steps);
        }
        self.steps_of_supervisors(s, steps);
        for (boot, of) in s.boots.iter().enumerate() {
            if of.lease == Lease::Held && !s.is_awake(boot) {
                steps.push(Step::Expire(boot));
            }
        }
        if s.paused {
            steps.push(Step::Resume);
        } else if s.left.pauses > 0 {
            steps.push(Step::Pause);
        }
    }

    fn steps_of_producers(&self, s: &State, steps: &mut Vec<Step>) {
        for id in 0..JOBS {
            // Its producer knows that the prerequisite exists.
            if prerequisite(id).is_some_and(|before| s.jobs[before].status == Status::Absent) {
                continue;
            }
            match (self.raw[id], s.jobs[id].produced) {
                (false, Produced::No) => steps.push(Step::Submit(id)),
                (true, Produced::No) => steps.push(Step::Write(id)),
                (true, Produced::Written) => steps.push(Step::Push(id)),
                _ => {}
            }
        }
    }

    fn steps_of_supervisors(&self, s: &State, steps: &mut Vec<Step>) {
        if self.has(Part::BootRepair) {
            let due = (0..s.boots.len()).filter(|boot| s.boots[*boot].lease == Lease::Due);
            steps.extend(due.map(Step::RecoverBoots));
        }
        if self.has(Part::PopRepair) {
            steps.push(Step::RecoverPops);
        }
        if !self.has(Part::Adoption) {
            return;
        }
        if s.list.len() > s.ready.len() {
            steps.push(Step::AdoptQueued);
        }
        if self.has(Part::Search) {
            for id in 0..JOBS {
                let is_dispatched = s.jobs[id].status == Status::Dispatched;
                if is_dispatched && s.score(id).is_none() && !s.list.contains(&id) {
                    steps.push(Step::AdoptUnqueued(id));
                }
            }
        }
    }

    /// Takes a step.
    pub fn take_step(&self, s: &mut State, step: Step) {
        match step {
            Step::Submit(id) => Self::submit(s, id),
            Step::Write(id) => {
                s.jobs[id].status = Status::Dispatched;
                s.jobs[id].produced = Produced::Written;
            }
            Step::Push(id) => {
                s.jobs[id].produced = Produced::Yes;
                // The last one comes to the front, as old clients push.
                s.list.insert(if id + 1 == JOBS { 0 } else { s.list.len() }, id);
            }
            Step::RecoverBoots(boot) => Self::recover_boots(s, boot),
            Step::RecoverPops => self.recover_pops(s),
            Step::AdoptQueued => self.adopt_queued(s),
            Step::AdoptUnqueued(id) => self.adopt_unqueued(s, id),
            Step::Expire(boot) => s.boots[boot].lease = Lease::Due,
            Step::Pause => {
                s.left.pauses -= 1;
                s.paused = true;
            }
            Step::Resume => s.paused = false,
            Step::Kill(actor) => {
                s.left.kills -= 1;
                (s.actors[actor].doing, s.actors[actor].stopped) = (Doing::Down, false);
            }
            Step::Stop(actor) => {
                s.left.stops -= 1;
                s.actors[actor].stopped = true;
            }
            Step::Continue(actor) => s.actors[actor].stopped = false,
            Step::Pop(actor)
            | Step::Claim(actor)
            | Step::ClaimUnanswered(actor)
            | Step::GiveBack(actor)
            | Step::Finish(actor)
            | Step::FinishUnanswered(actor)
            | Step::Renew(actor)
            | Step::PutBack(actor)
            | Step::Appear(actor) => {
                s.actors[actor].doing = self.step_of_actor(s, actor, step);
            }
        }
        s.tidy();
    }

    /// Returns what the actor is at afterwards.
    fn step_of_actor(&self, s: &mut State, actor: usize, step: Step) -> Doing {
        let (boot, doing) = (s.actors[actor].boot, s.actors[actor].doing);
        let popped = match doing {
            Doing::Popped(id)
            | Doing::Unsure(Some(id))
            | Doing::PutsBack(id)
            | Doing::Leaves(id) => Some(id),
            _ => None,
        };
        match (step, doing) {
            (Step::Pop(_), _) if !s.list.is_empty() => Doing::Popped(s.list.remove(0)),
            (Step::Claim(_), _) => match self.claim(s, boot, popped) {
                Ok(claimed) => claimed.map_or(Doing::Idle, Doing::Runs),
                Err(Fenced) => Doing::Down,
            },
            (Step::ClaimUnanswered(_), _) => {
                s.left.losses -= 1;
                let _ = self.claim(s, boot, popped);
                Doing::Unsure(popped)
            }
            (Step::GiveBack(_), _) => {
                Self::requeue(s, boot);
                popped.map_or(Doing::Idle, Doing::PutsBack)
            }
            (Step::Finish(_), Doing::Runs(id)) => {
                self.finish(s, boot, id);
                Doing::Idle
            }
            (Step::FinishUnanswered(_), Doing::Runs(id)) => {
                s.left.losses -= 1;
                self.finish(s, boot, id);
                doing
            }
            (Step::Renew(_), _) if Self::heartbeat(s, boot) => doing,
            (Step::Renew(_), _) => popped.map_or(Doing::Down, Doing::Leaves),
            (Step::PutBack(_), Doing::Leaves(id)) => {
                self.put_back(s, id, true);
                Doing::Down
            }
            (Step::PutBack(_), Doing::PutsBack(id)) => {
                self.put_back(s, id, true);
                Doing::Idle
            }
            (Step::Appear(_), _) => {
                s.actors[actor].boot = Self::appear(s);
                Doing::Idle
            }
            _ => doing,
        }
    }
}

fn steps_of_actor(s: &State, number: usize, steps: &mut Vec<Step>) {
    let actor = &s.actors[number];
    if actor.doing == Doing::Down {
        return steps.push(Step::Appear(number));
    }
    if s.left.kills > 0 {
        steps.push(Step::Kill(number));
    }
    if actor.stopped {
        return steps.push(Step::Continue(number));
    }
    if s.left.stops > 0 {
        steps.push(Step::Stop(number));
    }
    match actor.doing {
        Doing::Idle if s.list.is_empty() || s.paused => {}
        Doing::Idle => steps.extend([Step::Pop(number), Step::Claim(number)]),
        Doing::Popped(_) => steps.push(Step::Claim(number)),
        Doing::Unsure(_) => steps.push(Step::GiveBack(number)),
        Doing::Runs(_) => steps.push(Step::Finish(number)),
        Doing::PutsBack(_) | Doing::Leaves(_) => steps.push(Step::PutBack(number)),
        Doing::Down => {}
    }
    if s.left.losses > 0 {
        match actor.doing {
            Doing::Idle if !s.list.is_empty() && !s.paused => {
                steps.push(Step::ClaimUnanswered(number));
            }
            Doing::Popped(_) => steps.push(Step::ClaimUnanswered(number)),
            Doing::Runs(_) => steps.push(Step::FinishUnanswered(number)),
            _ => {}
        }
    }
    if s.boots[actor.boot].lease != Lease::Held && !matches!(actor.doing, Doing::Leaves(_)) {
        steps.push(Step::Renew(number));
    }
}
