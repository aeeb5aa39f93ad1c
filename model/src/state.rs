//! The memory of Redis, of the actors and of the producers.

/// The number of jobs.
pub(crate) const JOBS: usize = 3;
/// The number of actors.
pub(crate) const ACTORS: usize = 2;
/// The queue of the type, and the queue of an expression of `where`.
pub(crate) const QUEUES: usize = 2;
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
    /// `error`, as its graph was stopped.
    Cancelled,
}

impl Status {
    /// Returns whether the job has ended.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Error | Self::Cancelled)
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
#[expect(clippy::struct_excessive_bools, reason = "each stands for a field or a key of its own")]
pub struct Job {
    /// It has `where`: its queue is the second.
    pub is_selective: bool,
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
    /// It has a slot in the window of its graph.
    pub slot: bool,
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
    /// Its labels match the expression.
    pub matches: bool,
    /// It has read the expression since its boot began, and claims from its queue.
    pub serves: bool,
}

/// The window of the graph of all jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    /// `stopped`
    pub stopped: bool,
    /// `stopping`, at most 2.
    pub stopping: u8,
    /// The entry that ends the jobs that have not started: those before a place.
    pub settling: Option<Id>,
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
    /// Jobs that fail, which is no fault of the protocol.
    pub failures: u8,
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
    /// A job of a stopped graph has started.
    pub stop: bool,
    /// An actor has claimed a job that its labels do not match.
    pub labels: bool,
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
    /// The work lists, one after the other.
    pub list: Vec<Id>,
    /// The ready indexes of all queues: scores and ids in order.
    pub ready: Vec<(u8, Id)>,
    /// The jobs that the window holds, likewise.
    pub held: Vec<(u8, Id)>,
    /// The window.
    pub graph: Graph,
    /// The expression is known to Redis.
    pub has_expression: bool,
    /// The score in the mark of the last sweep for lost pops, by queue.
    pub marks: [Option<u8>; QUEUES],
    /// The boots of which something is left.
    pub boots: Vec<Boot>,
    /// The wake list of each queue has its token.
    pub tokens: [bool; QUEUES],
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
    /// The state before the first step: both actors are about to claim. With `selective`, the labels of the
    /// first match the expression of the last job.
    pub fn new(left: Bounds, selective: bool) -> Self {
        let job = |id| Job {
            is_selective: selective && id + 1 == JOBS,
            status: Status::Absent,
            boot: None,
            crashes: 0,
            leftover: false,
            pending: false,
            slot: false,
            produced: Produced::No,
            owner: None,
            ends: 0,
        };
        let boot = Boot { lease: Lease::Held, running: Vec::new() };
        Self {
            jobs: std::array::from_fn(job),
            list: Vec::new(),
            ready: Vec::new(),
            held: Vec::new(),
            graph: Graph::default(),
            has_expression: false,
            marks: [None; QUEUES],
            boots: vec![boot; ACTORS],
            tokens: [false; QUEUES],
            bell_hangs: true,
            bell_rang: false,
            popped: None,
            paused: false,
            actors: std::array::from_fn(|boot| Actor {
                boot,
                doing: Doing::Looks,
                stopped: false,
                matches: selective && boot == 0,
                serves: false,
            }),
            left,
            broken: Broken::default(),
        }
    }

    /// Returns the queue of a job.
    pub fn queue(&self, id: Id) -> usize {
        usize::from(self.jobs[id].is_selective)
    }

    /// Returns the queues that an actor claims from, in order.
    pub fn queues_of(&self, actor: usize) -> impl Iterator<Item = usize> + use<> {
        let serves = self.actors[actor].serves;
        serves.then_some(1).into_iter().chain([0])
    }

    /// Returns the ids in the work list of a queue.
    pub fn list_of(&self, queue: usize) -> impl Iterator<Item = Id> {
        self.list.iter().copied().filter(move |id| self.queue(*id) == queue)
    }

    /// Returns the first id in the work list of a queue.
    pub fn first(&self, queue: usize) -> Option<Id> {
        self.list_of(queue).next()
    }

    /// Returns the entries of the ready index of a queue.
    pub fn ready_of(&self, queue: usize) -> impl Iterator<Item = (u8, Id)> {
        self.ready.iter().copied().filter(move |(_, id)| self.queue(*id) == queue)
    }

    /// Removes the first copy of an id from its work list. Returns whether there was one.
    pub fn remove_first(&mut self, id: Id) -> bool {
        let place = self.list.iter().position(|other| *other == id);
        place.map(|place| self.list.remove(place)).is_some()
    }

    /// Wakes an actor for the queue of a job.
    pub fn wake(&mut self, id: Id) {
        self.tokens[self.queue(id)] = true;
    }

    /// Returns the score of the ready entry of a job.
    pub fn score(&self, id: Id) -> Option<u8> {
        self.ready.iter().find(|(_, other)| *other == id).map(|(score, _)| *score)
    }

    /// Returns whether the window holds a job.
    pub fn is_held(&self, id: Id) -> bool {
        self.held.iter().any(|(_, other)| *other == id)
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
        let last = |entries: &[(u8, Id)]| entries.last().map(|(score, _)| *score);
        let marks = self.marks.iter().copied().max().flatten();
        last(&self.ready).max(last(&self.held)).max(marks).map_or(2, |last| last + 2)
    }

    /// A score just before the first ready entry of a queue, or the time.
    pub fn before_first(&self, queue: usize) -> u8 {
        self.ready_of(queue).next().map_or_else(|| self.now(), |(score, _)| score - 1)
    }

    /// Returns whether an actor lives with this boot, and does not stand still.
    pub fn is_awake(&self, boot: BootId) -> bool {
        self.actors
            .iter()
            .any(|actor| actor.boot == boot && actor.doing != Doing::Down && !actor.stopped)
    }
}
