//! The memory of Redis, of the actors and of the producers.

use std::hash::{Hash, Hasher};

/// The number of jobs.
pub(crate) const JOBS: usize = 3;
/// The number of actors.
pub(crate) const ACTORS: usize = 2;
/// The crashes at which a job is given up.
pub(crate) const CRASH_LIMIT: u8 = 2;

/// A job, by its place.
pub(crate) type Id = usize;
/// A life of an actor, by its place in the list of boots.
pub(crate) type BootId = usize;

/// The field `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// No hash yet.
    Absent,
    /// `dispatched`
    Dispatched,
    /// `waiting_for_prerequisites`
    Waiting,
    /// `started`
    Started,
    /// `finished`
    Finished,
    /// `error`
    Error,
}

impl Status {
    /// Returns whether the job has ended.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Error)
    }
}

/// The progress of a job's producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Produced {
    /// It has done nothing.
    No,
    /// `HSET` was done, the push was not.
    Written,
    /// The job is accepted.
    Yes,
}

/// The hash of a job, and what the properties need to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Job {
    /// `status`
    pub status: Status,
    /// `boot_id`
    pub boot: Option<BootId>,
    /// `crashes`
    pub crashes: u8,
    /// `leftover` holds: an hour does not pass in the model.
    pub leftover: bool,
    /// Its pending set has an entry, and it is registered at its prerequisite.
    pub pending: bool,
    /// The progress of its producer.
    pub produced: Produced,
    /// No part of Redis: the boot whose claim is the last, until the job leaves it.
    pub owner: Option<BootId>,
    /// No part of Redis: how many ends were recorded, at most 2.
    pub ends: u8,
}

/// The lease of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lease {
    /// It runs.
    Held,
    /// It has run out, and no sweep has seen that.
    Due,
    /// It has no entry: never, or declared over.
    Gone,
}

/// A boot in Redis.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Boot {
    /// Its entry among the leases.
    pub lease: Lease,
    /// Its running set, in the order of claims.
    pub running: Vec<Id>,
}

/// The work of an actor, which has room for one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// It was killed, or has learnt that its lease is lost: it needs a new boot.
    Down,
    /// It waits for a token.
    Waits,
    /// It is about to claim.
    Looks,
    /// Its claim met an id without a ready entry.
    Adopts,
    /// The answer to its claim was lost.
    Unsure,
    /// It runs a job, or sends its end again.
    Runs(Id),
}

/// An actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Actor {
    /// Its boot, without meaning while it is down.
    pub boot: BootId,
    /// Its work.
    pub doing: Doing,
    /// It stands still.
    pub stopped: bool,
}

/// The faults that may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Actors that are killed.
    pub kills: u8,
    /// Actors that stand still for longer than their lease.
    pub stops: u8,
    /// Answers that are lost.
    pub losses: u8,
    /// Pauses of the queue.
    pub pauses: u8,
    /// Pops by a foreign actor.
    pub pops: u8,
    /// Losses of the connection on which Redis tells of pushes.
    pub bells: u8,
}

/// A rule that a step has broken, which the state after it does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each rule is broken or not")]
pub struct Broken {
    /// A boot without a lease has claimed a job.
    pub fence_of_claims: bool,
    /// A boot has recorded an end of a job that it did not own.
    pub fence_of_ends: bool,
    /// A boot has kept a state of a job that it did not own.
    pub fence_of_states: bool,
    /// A job has started before its prerequisite had finished.
    pub order: bool,
}

/// A state of everything.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each stands for a key or a connection of its own"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The jobs.
    pub jobs: [Job; JOBS],
    /// The work list.
    pub list: Vec<Id>,
    /// The ready index: scores and ids in order.
    pub ready: Vec<(u8, Id)>,
    /// The score in the mark of the last sweep for lost pops.
    pub mark: Option<u8>,
    /// The boots of which something is left.
    pub boots: Vec<Boot>,
    /// The wake list has its token.
    pub token: bool,
    /// Redis tells of pushes.
    pub bell_hangs: bool,
    /// It has told of one, and nobody has looked at the list yet.
    pub bell_rang: bool,
    /// The id that a foreign actor has popped and not started.
    pub popped: Option<Id>,
    /// The queue is paused.
    pub paused: bool,
    /// The actors.
    pub actors: [Actor; ACTORS],
    /// The faults that are left.
    pub left: Bounds,
    /// The rules that were broken.
    pub broken: Broken,
}

impl State {
    /// The state before the first step: both actors are about to claim.
    pub fn new(left: Bounds) -> Self {
        let job = Job {
            status: Status::Absent,
            boot: None,
            crashes: 0,
            leftover: false,
            pending: false,
            produced: Produced::No,
            owner: None,
            ends: 0,
        };
        let boot = Boot { lease: Lease::Held, running: Vec::new() };
        Self {
            jobs: std::array::from_fn(|_| job.clone()),
            list: Vec::new(),
            ready: Vec::new(),
            mark: None,
            boots: vec![boot; ACTORS],
            token: false,
            bell_hangs: true,
            bell_rang: false,
            popped: None,
            paused: false,
            actors: std::array::from_fn(|boot| Actor { boot, doing: Doing::Looks, stopped: false }),
            left,
            broken: Broken::default(),
        }
    }

    /// Returns the score of the ready entry of a job.
    pub fn score(&self, id: Id) -> Option<u8> {
        self.ready.iter().find(|(_, other)| *other == id).map(|(score, _)| *score)
    }

    /// Removes the ready entry of a job.
    pub fn unready(&mut self, id: Id) {
        self.ready.retain(|(_, other)| *other != id);
    }

    /// Writes the ready entry of a job.
    pub fn make_ready(&mut self, id: Id, score: u8) {
        self.unready(id);
        self.ready.push((score, id));
        self.ready.sort_unstable();
    }

    /// The time: later than all scores. Scores are even, see [`State::tidy`].
    pub fn now(&self) -> u8 {
        let last = self.ready.last().map(|(score, _)| *score);
        last.max(self.mark).map_or(2, |last| last + 2)
    }

    /// A score just before the first ready entry, or the time.
    pub fn before_first(&self) -> u8 {
        self.ready.first().map_or_else(|| self.now(), |(score, _)| score - 1)
    }

    /// Returns whether an actor lives with this boot, and does not stand still.
    pub fn is_awake(&self, boot: BootId) -> bool {
        self.actors
            .iter()
            .any(|actor| actor.boot == boot && actor.doing != Doing::Down && !actor.stopped)
    }

    /// Forgets what no step can tell apart, so that equal states are one: scores keep their order
    /// alone, and boots without a trace go.
    pub fn tidy(&mut self) {
        let mut scores: Vec<u8> = self.ready.iter().map(|(score, _)| *score).collect();
        scores.extend(self.mark);
        scores.sort_unstable();
        scores.dedup();
        let place = |score: u8| {
            let place = scores.iter().position(|other| *other == score).unwrap_or_default();
            u8::try_from(2 * place + 2).unwrap_or(u8::MAX)
        };
        for (score, _) in &mut self.ready {
            *score = place(*score);
        }
        self.mark = self.mark.map(place);
        // First those of the actors, then the others; the order of these means nothing.
        let of_actors = self.actors.iter().filter(|actor| actor.doing != Doing::Down);
        let mut order: Vec<BootId> = of_actors.map(|actor| actor.boot).collect();
        let current = order.len();
        let is_left = |boot: &Boot| boot.lease != Lease::Gone || !boot.running.is_empty();
        let others = (0..self.boots.len()).filter(|name| is_left(&self.boots[*name]));
        let others: Vec<BootId> = others.filter(|name| !order.contains(name)).collect();
        order.extend(others);
        order[current..].sort_by(|one, other| self.boots[*one].cmp(&self.boots[*other]));
        let mut renamed = vec![None; self.boots.len()];
        for (place, name) in order.iter().enumerate() {
            renamed[*name] = Some(place);
        }
        self.boots = order.iter().map(|name| self.boots[*name].clone()).collect();
        for job in &mut self.jobs {
            job.boot = job.boot.and_then(|boot| renamed[boot]);
            job.owner = job.owner.and_then(|boot| renamed[boot]);
        }
        for actor in &mut self.actors {
            actor.boot =
                if actor.doing == Doing::Down { 0 } else { renamed[actor.boot].unwrap_or(0) };
        }
    }
}

impl State {
    /// The same with the names of the two actors exchanged.
    fn mirrored(&self) -> Self {
        let mut mirrored = self.clone();
        mirrored.actors.swap(0, 1);
        if self.actors.iter().all(|actor| actor.doing != Doing::Down) {
            let exchange = |boot: &mut BootId| *boot = if *boot < 2 { 1 - *boot } else { *boot };
            mirrored.boots.swap(0, 1);
            mirrored.actors.iter_mut().for_each(|actor| exchange(&mut actor.boot));
            for job in &mut mirrored.jobs {
                job.boot.iter_mut().for_each(exchange);
                job.owner.iter_mut().for_each(exchange);
            }
        }
        mirrored
    }

    /// Tells actors apart by what they are, not by their names.
    fn look_of(&self, actor: usize) -> (Doing, bool, Option<&Boot>) {
        let Actor { boot, doing, stopped } = self.actors[actor];
        (doing, stopped, self.boots.get(boot).filter(|_| doing != Doing::Down))
    }
}

/// The search knows a state by its hash. Two states that differ in the names of the actors alone have
/// the same.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if self.look_of(0) > self.look_of(1) {
            return self.mirrored().hash(hasher);
        }
        let Self { jobs, list, ready, mark, boots, actors, left, broken, .. } = self;
        let Self { token, bell_hangs, bell_rang, popped, paused, .. } = self;
        (jobs, list, ready, mark, boots, actors, left, broken).hash(hasher);
        (token, bell_hangs, bell_rang, popped, paused).hash(hasher);
    }
}
