//! The jobs of an atomic batch that wait for each other.

use std::collections::HashMap;

use crate::proto::graph_plan::cycle;
use crate::proto::job::{Job, JobId};

/// The prerequisites within a batch, as indexes.
pub(super) struct Links {
    waits_for: Vec<Vec<usize>>,
    /// The number of prerequisites outside of the batch.
    pub(super) others: usize,
}

impl Links {
    pub(super) fn of(jobs: &[Job]) -> Self {
        let places: HashMap<&JobId, usize> =
            jobs.iter().enumerate().map(|(place, job)| (&job.id, place)).collect();
        let mut others = 0;
        let waits_for = jobs
            .iter()
            .map(|job| {
                let all = job.spec.waits_for().map(|id| places.get(id).copied());
                let (within, outside): (Vec<_>, Vec<_>) = all.partition(Option::is_some);
                others += outside.len();
                within.into_iter().flatten().collect()
            })
            .collect();
        Self { waits_for, others }
    }

    /// Returns a cycle of jobs; each waits for the next; the first comes again at the end.
    pub(super) fn cycle(&self) -> Option<Vec<usize>> {
        cycle(&self.waits_for)
    }
}
