//! The part of the state that a visitor with bounds may see: queues, actors and jobs of some types, groups, callers
//! or contexts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::SiteSnapshot;
use crate::proto::labels::label;
use crate::proto::target::ActorId;
use crate::rpc::{Caller, sees_whole_types, visible_snapshot};
use crate::store::{JobSummary, SeenActor};

impl SiteSnapshot {
    /// Returns the part that a caller may see. A number that counts more than that is left out.
    pub(in crate::web) fn within(&self, caller: &Caller) -> Self {
        let types = &caller.bounds.types;
        let mut seen = Self { snapshot: visible_snapshot(&self.snapshot, caller), ..self.clone() };
        let may_see = |job: &JobSummary| caller.sees(job);
        seen.latest.failed.retain(may_see);
        seen.latest.running.retain(may_see);
        seen.latest.prerequisites.retain(may_see);
        let sees_types = sees_whole_types(caller);
        let due = self.due.iter().filter(|job| match (types, &job.script_type) {
            _ if !sees_types => false,
            (Some(types), Some(of)) => types.contains(of),
            (Some(_), None) => false,
            (None, _) => true,
        });
        seen.due = due.cloned().collect();
        (seen.seen, seen.beyond) = self.seen_within(caller);
        seen.counts = None;
        seen.periodic_jobs = self.periodic_jobs.filter(|_| types.is_none() && sees_types);
        seen.is_whole = sees_types;
        seen
    }

    /// Returns the actors that were seen within the bounds of a caller, and the machines that have others too.
    fn seen_within(&self, caller: &Caller) -> (Arc<[SeenActor]>, BTreeSet<String>) {
        let admits =
            |actor: &ActorId| caller.admits(actor.script_type.as_str(), Some(actor.group.as_str()));
        let live = self.snapshot.actors.iter().map(|of| (&of.actor, &of.presence.labels));
        let all = live.chain(self.seen.iter().map(|of| (&of.actor, &of.labels)));
        let others = all.filter(|(actor, _)| !admits(actor));
        let beyond = others.filter_map(|(_, labels)| label(labels, "machine"));
        let seen = self.seen.iter().filter(|of| admits(&of.actor));
        (seen.cloned().collect(), beyond.map(ToString::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::super::parts::ShownState;
    use super::super::tests::site_snapshot;
    use super::*;
    use crate::proto::job::JobStatus;
    use crate::rpc::{Bounds, Scope, Scopes};

    fn caller(bounds: Bounds) -> Caller {
        let scopes: Scopes = [Scope::Read].into_iter().collect();
        Caller { name: "alice".to_owned(), scopes, bounds }
    }

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn job(id: &str, fields: &[(&'static str, &str)]) -> JobSummary {
        let fields: BTreeMap<_, _> =
            fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        JobSummary { id: id.parse().expect("legal"), status: JobStatus::Error, fields }
    }

    fn whole() -> SiteSnapshot {
        let mut now = site_snapshot();
        let mut other = now.snapshot.queues[0].clone();
        other.0.queue = "type:python:group:io".parse().expect("legal");
        now.snapshot.queues.push(other);
        now.latest.failed = vec![
            job("j1", &[("script_type", "osis"), ("caller_id", "alice")]),
            job("j2", &[("script_type", "python"), ("group", "io"), ("caller_id", "bob")]),
        ];
        now
    }

    fn seen(bounds: Bounds) -> (Vec<String>, Vec<String>, SiteSnapshot) {
        let seen = whole().within(&caller(bounds));
        let queues = seen.snapshot.queues.iter().map(|(state, _)| state.queue.to_string());
        let jobs = seen.latest.failed.iter().map(|job| job.id.to_string());
        (queues.collect(), jobs.collect(), seen)
    }

    #[test]
    fn caller_of_a_type_sees_its_queues_jobs_and_numbers_alone() {
        let (queues, jobs, seen) =
            seen(Bounds { types: Some(names(&["osis"])), ..Bounds::default() });
        assert_eq!((queues, jobs), (vec!["type:osis".to_owned()], vec!["j1".to_owned()]));
        assert_eq!((seen.jobs(), seen.dead()), (None, Some(0)));
        assert_eq!(seen.count(ShownState::Queued), Some(3));
        assert_eq!(seen.count(ShownState::Error), None);
    }

    #[test]
    fn caller_of_a_group_or_of_itself_sees_no_numbers_of_others() {
        let (queues, jobs, seen_) =
            seen(Bounds { groups: Some(names(&["io"])), ..Bounds::default() });
        assert_eq!(queues, ["type:python:group:io"]);
        assert_eq!((jobs, seen_.dead()), (vec!["j2".to_owned()], None));
        assert!(seen_.snapshot.types.is_empty());
        let (_, jobs, own) = seen(Bounds { callers: Some(names(&[])), ..Bounds::default() });
        assert_eq!(jobs, ["j1"]);
        assert_eq!(own.count(ShownState::Queued), None);
    }
}
