//! The part of a snapshot that a caller with bounds may see.

use super::caller::{Bounds, Caller};
use crate::proto::target::Group;
use crate::store::QueueState;
use crate::view::{Snapshot, counted};

/// Returns the queues, actors and numbers of a snapshot that a caller may see. A number that counts more than that is left
/// out.
pub(crate) fn visible_snapshot(snapshot: &Snapshot, caller: &Caller) -> Snapshot {
    let mut seen = snapshot.clone();
    keep_visible(&mut seen.queues, |(state, _)| state, caller);
    seen.actors.retain(|of| caller.admits_actor(&of.actor));
    seen.silent_actors.retain(|(actor, _)| caller.admits_actor(actor));
    seen.actor_counts = counted(&seen.actors);
    let sees_types = sees_whole_types(caller);
    seen.types.retain(|of| sees_types && caller.admits(of.script_type.as_str(), None));
    seen.minutes = [].into();
    // Their messages are of all types.
    seen.brokers.clear();
    seen.emptied = None;
    seen.pauses.retain(|rule| {
        let group = rule.group.as_ref().map(Group::as_str);
        rule.script_type.as_ref().is_none_or(|of| caller.admits(of.as_str(), group))
    });
    seen.paused_by.clear();
    seen.queues.iter_mut().for_each(|(state, _)| state.paused_by = None);
    seen.unserved.clear();
    seen.ids_without_hash.clear();
    seen.failing_notifications.clear();
    seen.periodic_jobs.clear();
    seen
}

/// Keeps the queues that a caller may see, without what tells of jobs beyond its bounds.
pub(super) fn keep_visible<T>(
    queues: &mut Vec<T>,
    state_of: impl Fn(&mut T) -> &mut QueueState,
    caller: &Caller,
) {
    let sees_types = sees_whole_types(caller);
    queues.retain_mut(|of| {
        let state = state_of(of);
        if !sees_types {
            state.type_throughput_per_s = None;
        }
        if caller.is_bound() {
            hide_key(&mut state.held_by);
        }
        let target = &state.queue.target;
        let group = target.group_name().map(Group::as_str);
        // An expression is a setting of the jobs of others.
        let is_of_others = !sees_types && target.selector().is_some();
        !is_of_others && caller.admits(target.script_type().as_str(), group)
    });
}

/// Returns true if the bounds of a caller are script types alone, or there are none: these are counted as wholes.
pub(crate) fn sees_whole_types(caller: &Caller) -> bool {
    let Bounds { groups, callers, contexts, .. } = &caller.bounds;
    groups.is_none() && callers.is_none() && contexts.is_none()
}

/// Leaves of a limit that holds a job its name: the value that it counts apart, such as a graph or a key, is of the job.
fn hide_key(held_by: &mut Option<String>) {
    if let Some(limit) = held_by {
        let name = limit.split('=').next().unwrap_or_default().len();
        limit.truncate(name);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::proto::notification::NotifyMessage;
    use crate::proto::pauses::PauseRule;
    use crate::rpc::{Scope, Scopes};
    use crate::view::snapshot::tests::healthy_snapshot;

    fn seen(bounds: Bounds) -> Snapshot {
        let scopes: Scopes = [Scope::Read].into_iter().collect();
        let to = "ops".parse().expect("legal");
        let message = NotifyMessage::new("ops-1".to_owned(), to, String::new());
        let mut whole = healthy_snapshot();
        whole.failing_notifications = vec![message.record(String::new(), "no route", true)];
        whole.queues[0].0.queue = "type:osis:group:io".parse().expect("legal");
        whole.queues[0].0.type_throughput_per_s = Some(2.5);
        whole.queues[0].0.held_by = Some("@graph=secret".to_owned());
        whole.pauses = ["*", "type:sal:*"].map(|rule| rule.parse().expect("legal")).to_vec();
        visible_snapshot(&whole, &Caller { name: "ann".to_owned(), scopes, bounds })
    }

    #[test]
    fn caller_with_bounds_sees_no_notification_and_no_rate_of_others() {
        let names = |name: &str| Some(BTreeSet::from([name.to_owned()]));
        for (bounds, rate) in [
            (Bounds { types: names("osis"), ..Bounds::default() }, Some(2.5)),
            (Bounds { groups: names("io"), ..Bounds::default() }, None),
            (Bounds { callers: names("ann"), ..Bounds::default() }, None),
            (Bounds { contexts: names("work"), ..Bounds::default() }, None),
        ] {
            let seen = seen(bounds);
            assert!(seen.failing_notifications.is_empty());
            let rates = seen.queues.iter().map(|(state, _)| state.type_throughput_per_s);
            assert_eq!(rates.collect::<Vec<_>>(), [rate]);
            assert_eq!(seen.queues[0].0.held_by.as_deref(), Some("@graph"));
        }
        let pauses = seen(Bounds { types: names("osis"), ..Bounds::default() }).pauses;
        assert_eq!(pauses, [PauseRule::default()], "a pause of another type is hidden");
    }
}
