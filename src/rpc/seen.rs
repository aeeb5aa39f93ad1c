//! The part of a moment that a caller with bounds may see.

use super::caller::{Bounds, Caller};
use crate::proto::queue::Queue;
use crate::view::{Moment, counted};

/// Returns the queues, actors and numbers of a moment that a caller may see. A number that counts more than that is left
/// out.
pub(crate) fn moment_within(moment: &Moment, caller: &Caller) -> Moment {
    let mut seen = moment.clone();
    seen.queues.retain(|(state, _)| admits_queue(caller, &state.queue));
    seen.actors
        .retain(|of| caller.admits(of.actor.script_type.as_str(), Some(of.actor.group.as_str())));
    seen.actor_counts = counted(&seen.actors);
    let sees_types = sees_whole_types(caller);
    seen.types.retain(|of| sees_types && caller.admits(of.script_type.as_str(), None));
    seen.minutes = [].into();
    // Their messages are of all types.
    seen.brokers.clear();
    seen.periodic_jobs.clear();
    seen
}

/// Returns true if the bounds of a caller are script types alone, or there are none: these are counted as wholes.
pub(crate) fn sees_whole_types(caller: &Caller) -> bool {
    let Bounds { types: _, groups, callers, contexts } = &caller.bounds;
    groups.is_none() && callers.is_none() && contexts.is_none()
}

fn admits_queue(caller: &Caller, queue: &Queue) -> bool {
    let target = queue.target.to_string();
    caller.admits(queue.target.script_type().as_str(), target.split(':').nth(3))
}
