//! The rules that hold in every state, and what must be seen in some.

use crate::Search;
use crate::scripts::Protocol;
use crate::state::{Doing, JOBS, Lease, Produced, State, Status};
use crate::steps::Step;

/// A property of a state.
type Rule = fn(&Search, &State) -> bool;

/// A job stands in the index of its state and in no other.
pub(crate) const ONE_PLACE: &str = "a job stands in one place";
/// No job ends a second time.
pub(crate) const ONE_END: &str = "a job ends once";

/// The rules of every state.
pub(crate) const RULES: [(&str, Rule); 9] = [
    (ONE_PLACE, |_, s| (0..JOBS).all(|id| stands_in_one_place(s, id))),
    (ONE_END, |_, s| s.jobs.iter().all(|job| job.ends <= 1)),
    ("only the owner of a job records its end", |_, s| !s.broken.fence_of_ends),
    ("only the owner of a job keeps its state", |_, s| !s.broken.fence_of_states),
    ("a boot without a lease claims nothing", |_, s| !s.broken.fence_of_claims),
    ("a job starts after its prerequisite has finished", |_, s| !s.broken.order),
    ("who hears of pushes knows of each pushed id", |_, s| {
        !s.bell_hangs || s.bell_rang || s.list.iter().all(|id| s.score(*id).is_some())
    }),
    // A fault may cost a token, and the job waits for the end of a turn.
    ("a ready job beside an idle actor has a token", |search, s| {
        s.left != search.bounds || !waits_unseen(s)
    }),
    ("every job ends once faults stop", |search, s| all_end(&search.protocol, s.clone())),
];

/// The states that a search has to reach. One that misses a state of these shows nothing about it.
pub(crate) const SIGHTS: [(&str, Rule); 4] = [
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
];

/// A dispatched job that no script has seen yet may lack its ready entry: it is about to be adopted.
fn stands_in_one_place(s: &State, id: usize) -> bool {
    let job = &s.jobs[id];
    let owners: Vec<usize> =
        (0..s.boots.len()).filter(|boot| s.boots[*boot].running.contains(&id)).collect();
    let is_ready = s.score(id).is_some();
    match job.status {
        Status::Started => owners.len() == 1 && job.boot == Some(owners[0]) && !is_ready,
        Status::Dispatched => owners.is_empty() && !job.pending,
        Status::Waiting => owners.is_empty() && !is_ready && job.pending,
        Status::Absent | Status::Finished | Status::Error => owners.is_empty() && !is_ready,
    }
}

/// Returns whether an actor waits though it could run the first job, and nobody is about to look.
fn waits_unseen(s: &State) -> bool {
    let is_ready = s.list.first().is_some_and(|id| s.score(*id).is_some());
    let does = |doing| s.actors.iter().any(|actor| actor.doing == doing);
    is_ready && !s.token && does(Doing::Waits) && !does(Doing::Looks) && !does(Doing::Adopts)
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

/// The lowest comes first; `None` for a fault.
fn urgency(step: Step) -> Option<u8> {
    Some(match step {
        Step::Kill(_)
        | Step::Stop(_)
        | Step::Pause
        | Step::ClaimUnanswered(_)
        | Step::FinishUnanswered(_)
        | Step::Pop
        | Step::PutBack
        | Step::LoseBell => return None,
        Step::Resume | Step::Continue(_) | Step::Expire(_) | Step::RecoverBoots(_) => 0,
        Step::Renew(_) | Step::GiveBack(_) | Step::Appear(_) | Step::HangBell => 1,
        Step::Submit(_) | Step::Write(_) | Step::Push(_) => 2,
        Step::Hear | Step::Adopt(_) => 3,
        Step::Finish(_) | Step::Keep(_) | Step::Claim(_) | Step::Wake(_) => 4,
        Step::TurnEnds(_) => 5,
        Step::RecoverPops => 6,
    })
}
