//! The rules that hold in every state, and what must be seen in some.

use crate::Search;
use crate::scripts::Protocol;
use crate::state::{ACTORS, Bounds, Doing, JOBS, Lease, Produced, QUEUES, State, Status};
use crate::steps::Step;

/// A property of a state.
type Rule = fn(&Search, &State) -> bool;

/// A job stands in the index of its state and in no other.
pub(crate) const ONE_PLACE: &str = "a job stands in one place";
/// No job ends a second time.
pub(crate) const ONE_END: &str = "a job ends once";

/// The rules of every state.
pub(crate) const RULES: [(&str, Rule); 13] = [
    (ONE_PLACE, |_, s| (0..JOBS).all(|id| stands_in_one_place(s, id))),
    (ONE_END, |_, s| s.jobs.iter().all(|job| job.ends <= 1)),
    ("only the owner of a job records its end", |_, s| !s.broken.fence_of_ends),
    ("only the owner of a job keeps its state", |_, s| !s.broken.fence_of_states),
    ("a boot without a lease claims nothing", |_, s| !s.broken.fence_of_claims),
    ("a job starts after its prerequisite has finished", |_, s| !s.broken.order),
    ("no more jobs of a graph run than its window lets", |search, s| {
        let running = s.jobs.iter().filter(|job| job.status == Status::Started).count();
        let most = search.protocol.window.and_then(|window| window.at_a_time);
        most.is_none_or(|most| running <= most)
    }),
    ("no job starts after the failures that stop its graph", |search, s| {
        let failures = s.jobs.iter().filter(|job| job.status == Status::Error).count();
        let most = search.protocol.window.and_then(|window| window.stop_after);
        !s.broken.stop && most.is_none_or(|most| failures < most || s.graph.stopped)
    }),
    ("an actor claims no job that its labels do not match", |_, s| !s.broken.labels),
    ("who hears of pushes knows of each pushed id", |_, s| {
        // A second copy that the sweep for foreign pops has put there was not pushed.
        let is_known = |id: &usize| s.score(*id).is_some() || s.jobs[*id].leftover;
        !s.bell_hangs || s.bell_rang || s.list.iter().all(is_known)
    }),
    ("an id stands once in its list while no foreign actor pops", |search, s| {
        let is_once = |id| s.list.iter().filter(|other| **other == id).count() <= 1;
        s.left.pops != search.bounds.pops || (0..JOBS).all(is_once)
    }),
    // A fault may cost a token, and the job waits for the end of a turn.
    ("a ready job beside an idle actor has a token", |search, s| {
        let failures = search.bounds.failures;
        Bounds { failures, ..s.left } != search.bounds || !waits_unseen(s)
    }),
    ("every job ends once faults stop", |search, s| all_end(&search.protocol, s.clone())),
];

/// The states that a search has to reach. One that misses a state of these shows nothing about it.
pub(crate) const SIGHTS: [(&str, Rule); 7] = [
    ("all jobs finish", |_, s| s.jobs.iter().all(|job| job.status == Status::Finished)),
    ("a job is given up", |_, s| s.jobs[0].status == Status::Error),
    ("an id is left behind in the queue", |_, s| {
        s.list.iter().any(|id| s.jobs[*id].status.is_end())
    }),
    ("a boot is dead that does not know it", |_, s| {
        s.actors.iter().any(|actor| {
            matches!(actor.doing, Doing::Runs(_)) && s.boots[actor.boot].lease == Lease::Gone
        })
    }),
    ("a window holds a job", |_, s| !s.held.is_empty()),
    ("a job ends with its graph", |_, s| s.jobs.iter().any(|job| job.status == Status::Cancelled)),
    ("a job with an expression runs", |_, s| {
        s.jobs.iter().any(|job| job.is_selective && job.status == Status::Started)
    }),
];

/// A dispatched job that no script has seen yet may lack its ready entry: it is about to be adopted.
fn stands_in_one_place(s: &State, id: usize) -> bool {
    let job = &s.jobs[id];
    let owners: Vec<usize> =
        (0..s.boots.len()).filter(|boot| s.boots[*boot].running.contains(&id)).collect();
    let (is_ready, is_held) = (s.score(id).is_some(), s.is_held(id));
    let waits_nowhere = !is_ready && !is_held;
    match job.status {
        Status::Started => owners.len() == 1 && job.boot == Some(owners[0]) && waits_nowhere,
        Status::Dispatched => {
            let is_twice = is_ready && is_held;
            owners.is_empty() && !job.pending && !is_twice && !job.slot
        }
        Status::Waiting => owners.is_empty() && waits_nowhere && job.pending && !job.slot,
        _ => owners.is_empty() && waits_nowhere && !job.slot,
    }
}

/// Returns whether an actor waits though it could run the first job, and nobody is about to look.
fn waits_unseen(s: &State) -> bool {
    (0..QUEUES).any(|queue| {
        let is_ready = s.first(queue).is_some_and(|id| s.score(id).is_some());
        let serves = |actor: usize| queue == 0 || s.actors[actor].serves;
        let does = |doing| (0..ACTORS).any(|actor| serves(actor) && s.actors[actor].doing == doing);
        let is_seen = s.tokens[queue] || does(Doing::Looks) || does(Doing::Adopts);
        is_ready && does(Doing::Waits) && !is_seen
    })
}

/// Takes the steps that come when no fault happens any more, and returns whether all jobs end. The end of a
/// turn, and the sweep for foreign pops, come when nothing else is left to do.
fn all_end(protocol: &Protocol, mut s: State) -> bool {
    /// Far more than it takes.
    const STEPS_MAX: usize = 200;
    let mut steps = Vec::new();
    for _ in 0..STEPS_MAX {
        if s.jobs.iter().all(|job| job.produced == Produced::Yes && job.status.is_end()) {
            return true;
        }
        steps.clear();
        protocol.steps(&s, &mut steps);
        steps.retain(|step| urgency(*step).is_some());
        steps.sort_by_key(|step| urgency(*step));
        let next = steps.iter().find_map(|step| {
            let mut next = s.clone();
            protocol.take_step(&mut next, *step);
            (next != s).then_some(next)
        });
        let Some(next) = next else { return false };
        s = next;
    }
    false
}

/// The lowest comes first; `None` for a fault, and for the sweep of limits, which no job needs.
fn urgency(step: Step) -> Option<u8> {
    Some(match step {
        Step::Kill(_)
        | Step::Stop(_)
        | Step::Pause
        | Step::ClaimUnanswered(_)
        | Step::FinishUnanswered(_)
        | Step::Fail(_)
        | Step::TendLimits
        | Step::Pop
        | Step::PutBack
        | Step::LoseBell => return None,
        Step::Resume | Step::Continue(_) | Step::Expire(_) | Step::RecoverBoots(_) => 0,
        Step::Renew(_) | Step::GiveBack(_) | Step::Appear(_) | Step::HangBell => 1,
        Step::Submit(_) | Step::Write(_) | Step::Push(_) => 2,
        Step::Hear | Step::Adopt(_) | Step::Learn(_) | Step::Settle => 3,
        Step::Finish(_) | Step::Keep(_) | Step::Claim(_) | Step::Wake(_) => 4,
        Step::TurnEnds(_) => 5,
        Step::RecoverPops => 6,
    })
}
