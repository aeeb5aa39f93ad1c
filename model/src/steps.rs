//! The steps: who may do what when, and what it stands for.

use crate::scripts::{Claimed, Fenced, Part, Protocol};
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
    /// An actor gets the token.
    Wake(usize),
    /// A turn of an actor's wait ends.
    TurnEnds(usize),
    /// An actor claims a job.
    Claim(usize),
    /// The same, and the answer is lost.
    ClaimUnanswered(usize),
    /// An actor adopts what its claim met.
    Adopt(usize),
    /// An actor that does not know what it has claimed gives all of it back.
    GiveBack(usize),
    /// An actor keeps the state of its job.
    Keep(usize),
    /// An actor records the end of its job.
    Finish(usize),
    /// The same, and the answer is lost: it will send it again.
    FinishUnanswered(usize),
    /// An actor records that its job has failed.
    Fail(usize),
    /// An actor reads the expressions of `where`.
    Learn(usize),
    /// An actor renews its lease, or learns that it is lost.
    Renew(usize),
    /// An actor begins a new boot.
    Appear(usize),
    /// A lease runs out.
    Expire(BootId),
    /// A supervisor, or the successor of an actor, declares a boot dead.
    RecoverBoots(BootId),
    /// A supervisor puts back what foreign actors popped.
    RecoverPops,
    /// A supervisor looks at the window.
    TendLimits,
    /// An actor or a supervisor goes on to end the jobs of a stopped graph.
    Settle,
    /// A supervisor adopts what Redis told it of.
    Hear,
    /// The connection on which Redis tells of pushes is lost.
    LoseBell,
    /// A supervisor asks Redis again to tell of pushes.
    HangBell,
    /// A foreign actor pops a job.
    Pop,
    /// That actor puts it back.
    PutBack,
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
pub const STEPS: [(&str, StandsFor); 31] = [
    ("Submit", StandsFor::Script("submit")),
    ("Write", StandsFor::Command("HSET")),
    ("Push", StandsFor::Command("RPUSH, or LPUSH for the last job")),
    ("Wake", StandsFor::Command("BLPOP of a wake list")),
    ("TurnEnds", StandsFor::Process("BLPOP ends without a token")),
    ("Claim", StandsFor::Script("claim")),
    ("ClaimUnanswered", StandsFor::Script("claim")),
    ("Adopt", StandsFor::Script("adopt")),
    ("GiveBack", StandsFor::Script("requeue")),
    ("Keep", StandsFor::Script("keep_state")),
    ("Finish", StandsFor::Script("finish")),
    ("FinishUnanswered", StandsFor::Script("finish")),
    ("Fail", StandsFor::Script("finish")),
    ("Learn", StandsFor::Command("ZRANGEBYSCORE of the used expressions")),
    ("Renew", StandsFor::Script("heartbeat")),
    ("Appear", StandsFor::Script("appear")),
    ("Expire", StandsFor::Process("time passes")),
    ("RecoverBoots", StandsFor::Script("recover_boots")),
    ("RecoverPops", StandsFor::Script("recover_pops")),
    ("TendLimits", StandsFor::Script("tend_limits")),
    ("Settle", StandsFor::Script("settle")),
    ("Hear", StandsFor::Script("adopt")),
    ("LoseBell", StandsFor::Process("a connection is lost")),
    ("HangBell", StandsFor::Command("CLIENT TRACKING")),
    ("Pop", StandsFor::Command("BLPOP of a work list, by a foreign actor")),
    ("PutBack", StandsFor::Command("LPUSH, by a foreign actor")),
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
            self.steps_of_actor(s, actor, steps);
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
            // Its producer knows that the prerequisite exists. One program submits all jobs of a graph.
            let before =
                if self.window.is_some() { id.checked_sub(1) } else { self.prerequisite(id) };
            if before.is_some_and(|before| s.jobs[before].status == Status::Absent) {
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
        if !s.held.is_empty() {
            steps.push(Step::TendLimits);
        }
        if s.graph.settling.is_some() {
            steps.push(Step::Settle);
        }
        match (s.bell_hangs, s.bell_rang) {
            (true, true) => steps.push(Step::Hear),
            (true, false) => {}
            (false, _) => steps.push(Step::HangBell),
        }
        if s.bell_hangs && s.left.bells > 0 {
            steps.push(Step::LoseBell);
        }
        // A pushed job that a foreign actor pops before its adoption is lost with that actor.
        let is_ready = s.first(0).is_some_and(|id| s.score(id).is_some());
        match s.popped {
            Some(_) => steps.push(Step::PutBack),
            None if is_ready && s.left.pops > 0 => steps.push(Step::Pop),
            None => {}
        }
    }

    /// Takes a step.
    pub fn take_step(&self, s: &mut State, step: Step) {
        match step {
            Step::Submit(id) => self.submit(s, id),
            Step::Write(id) => {
                s.jobs[id].status = Status::Dispatched;
                s.jobs[id].produced = Produced::Written;
            }
            Step::Push(id) => push(s, id),
            Step::RecoverBoots(boot) => self.recover_boots(s, boot),
            Step::RecoverPops => self.recover_pops(s),
            Step::TendLimits => Self::tend_limits(s),
            Step::Settle => self.settle(s),
            Step::Hear => {
                s.bell_rang = false;
                self.adopt(s);
            }
            Step::LoseBell => {
                s.left.bells -= 1;
                (s.bell_hangs, s.bell_rang) = (false, false);
            }
            Step::HangBell => {
                (s.bell_hangs, s.bell_rang) = (true, self.has(Part::LookAtStart));
            }
            Step::Pop => {
                s.left.pops -= 1;
                s.popped = Some(s.list.remove(0));
            }
            Step::PutBack => {
                s.list.splice(0..0, s.popped.take());
                s.bell_rang |= s.bell_hangs;
            }
            Step::Expire(boot) => s.boots[boot].lease = Lease::Due,
            Step::Pause => {
                s.left.pauses -= 1;
                s.paused = true;
            }
            Step::Resume => {
                s.paused = false;
                s.tokens = [true, s.has_expression];
            }
            Step::Kill(actor) => {
                s.left.kills -= 1;
                (s.actors[actor].doing, s.actors[actor].stopped) = (Doing::Down, false);
            }
            Step::Stop(actor) => {
                s.left.stops -= 1;
                s.actors[actor].stopped = true;
            }
            Step::Continue(actor) => s.actors[actor].stopped = false,
            Step::Wake(actor)
            | Step::TurnEnds(actor)
            | Step::Claim(actor)
            | Step::ClaimUnanswered(actor)
            | Step::Adopt(actor)
            | Step::GiveBack(actor)
            | Step::Keep(actor)
            | Step::Finish(actor)
            | Step::FinishUnanswered(actor)
            | Step::Fail(actor)
            | Step::Learn(actor)
            | Step::Renew(actor)
            | Step::Appear(actor) => {
                s.actors[actor].doing = self.step_of_actor(s, actor, step);
            }
        }
        s.tidy();
    }

    /// Returns what the actor is at afterwards.
    fn step_of_actor(&self, s: &mut State, actor: usize, step: Step) -> Doing {
        let (boot, doing) = (s.actors[actor].boot, s.actors[actor].doing);
        match (step, doing) {
            (Step::Wake(_), _) => {
                if let Some(queue) = s.queues_of(actor).find(|queue| s.tokens[*queue]) {
                    s.tokens[queue] = false;
                }
                Doing::Looks
            }
            (Step::TurnEnds(_), _) => Doing::Looks,
            (Step::Claim(_), _) => match self.claim(s, actor) {
                Ok(Claimed::Job(id)) => Doing::Runs(id),
                Ok(Claimed::Nothing) => Doing::Waits,
                Ok(Claimed::Unadopted) => Doing::Adopts,
                Err(Fenced) => Doing::Down,
            },
            (Step::ClaimUnanswered(_), _) => {
                s.left.losses -= 1;
                let _ = self.claim(s, actor);
                Doing::Unsure
            }
            (Step::Adopt(_), _) => {
                self.adopt(s);
                Doing::Looks
            }
            (Step::GiveBack(_), _) => {
                self.requeue(s, boot);
                Doing::Looks
            }
            (Step::Keep(_), Doing::Runs(id)) => {
                self.keep_state(s, boot, id);
                doing
            }
            (Step::Finish(_), Doing::Runs(id)) => {
                self.finish(s, boot, id, Status::Finished);
                Doing::Looks
            }
            (Step::Fail(_), Doing::Runs(id)) => {
                s.left.failures -= 1;
                self.finish(s, boot, id, Status::Error);
                Doing::Looks
            }
            (Step::Learn(_), _) => {
                s.actors[actor].serves = true;
                if doing == Doing::Waits { Doing::Looks } else { doing }
            }
            (Step::FinishUnanswered(_), Doing::Runs(id)) => {
                s.left.losses -= 1;
                self.finish(s, boot, id, Status::Finished);
                doing
            }
            (Step::Renew(_), _) => {
                if Self::heartbeat(s, boot) {
                    doing
                } else {
                    Doing::Down
                }
            }
            (Step::Appear(_), _) => {
                s.actors[actor].boot = Self::appear(s);
                Doing::Looks
            }
            _ => doing,
        }
    }

    fn steps_of_actor(&self, s: &State, number: usize, steps: &mut Vec<Step>) {
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
        let has_token = s.queues_of(number).any(|queue| s.tokens[queue]);
        let is_empty = s.queues_of(number).all(|queue| s.first(queue).is_none());
        match actor.doing {
            Doing::Waits if has_token => steps.push(Step::Wake(number)),
            // A look at an empty list, or at a paused one, changes nothing.
            Doing::Waits if is_empty || s.paused => {}
            Doing::Waits => steps.push(Step::TurnEnds(number)),
            Doing::Looks => steps.push(Step::Claim(number)),
            Doing::Adopts => steps.push(Step::Adopt(number)),
            Doing::Unsure => steps.push(Step::GiveBack(number)),
            Doing::Runs(_) => steps.extend([Step::Keep(number), Step::Finish(number)]),
            Doing::Down => {}
        }
        if s.left.failures > 0 && matches!(actor.doing, Doing::Runs(_)) {
            steps.push(Step::Fail(number));
        }
        if s.has_expression && !actor.serves && (actor.matches || !self.has(Part::Labels)) {
            steps.push(Step::Learn(number));
        }
        if s.left.losses > 0 {
            match actor.doing {
                Doing::Looks => steps.push(Step::ClaimUnanswered(number)),
                Doing::Runs(_) => steps.push(Step::FinishUnanswered(number)),
                _ => {}
            }
        }
        if s.boots[actor.boot].lease != Lease::Held {
            steps.push(Step::Renew(number));
        }
    }
}

fn push(s: &mut State, id: Id) {
    s.jobs[id].produced = Produced::Yes;
    // The last one comes to the front, as old clients push.
    s.list.insert(if id + 1 == JOBS { 0 } else { s.list.len() }, id);
    s.bell_rang |= s.bell_hangs;
}
