//! The order of the jobs of an atomic batch. Pure.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::proto::job::{Job, JobId};

/// For each job the places of its prerequisites within the batch, each once.
pub(super) fn links_of(jobs: &[Job]) -> Vec<BTreeSet<usize>> {
    let places: HashMap<&JobId, usize> =
        jobs.iter().enumerate().map(|(place, job)| (&job.id, place)).collect();
    let within =
        |job: &Job| job.spec.waits_for().filter_map(|id| places.get(id).copied()).collect();
    jobs.iter().map(within).collect()
}

/// The order of the commit: the dependents of a job come before it, so that all of them are there
/// once it can end. Jobs that wait for no other keep their order, and are dispatched in it.
pub(super) fn order_of(links: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut uncommitted = vec![0; links.len()];
    links.iter().flatten().for_each(|prerequisite| uncommitted[*prerequisite] += 1);
    let waits = |place: &usize| !links[*place].is_empty();
    let mut next: VecDeque<usize> =
        (0..links.len()).filter(|place| uncommitted[*place] == 0 && waits(place)).collect();
    let mut order = Vec::with_capacity(links.len());
    while let Some(place) = next.pop_front() {
        order.push(place);
        for prerequisite in &links[place] {
            uncommitted[*prerequisite] -= 1;
            if uncommitted[*prerequisite] == 0 && waits(prerequisite) {
                next.push_back(*prerequisite);
            }
        }
    }
    order.extend((0..links.len()).filter(|place| !waits(place)));
    order
}

/// The place of each job in its graph: its prerequisites come before it, else the jobs keep their order.
pub(super) fn ranks_of(links: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); links.len()];
    let mut pending: Vec<usize> = links.iter().map(BTreeSet::len).collect();
    for (place, prerequisites) in links.iter().enumerate() {
        for prerequisite in prerequisites {
            dependents[*prerequisite].push(place);
        }
    }
    let mut next: BTreeSet<usize> = (0..links.len()).filter(|place| pending[*place] == 0).collect();
    let mut ranks = vec![0; links.len()];
    let mut rank = 0;
    while let Some(place) = next.pop_first() {
        ranks[place] = rank;
        rank += 1;
        for dependent in &dependents[place] {
            pending[*dependent] -= 1;
            if pending[*dependent] == 0 {
                next.insert(*dependent);
            }
        }
    }
    ranks
}
