//! The jobs of an atomic batch that wait for each other.

use std::collections::HashMap;

use crate::proto::job::{Job, JobId};

/// The prerequisites within a batch, as indexes.
pub(super) struct Links {
    waits_for: Vec<Vec<usize>>,
    /// The number of prerequisites outside of the batch.
    pub(super) others: usize,
}

impl Links {
    /// Returns the links of jobs.
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
        // Jobs that lead to no cycle.
        let mut clear = vec![false; self.waits_for.len()];
        for start in 0..self.waits_for.len() {
            // The path from the start, each job with the index of the next link to follow.
            let mut way: Vec<(usize, usize)> = vec![(start, 0)];
            let mut on_way = HashMap::from([(start, 0)]);
            while let Some((job, link)) = way.last_mut() {
                match self.waits_for[*job].get(*link) {
                    _ if clear[*job] => {
                        on_way.remove(job);
                        way.pop();
                    }
                    None => clear[*job] = true,
                    Some(next) => {
                        *link += 1;
                        if let Some(first) = on_way.get(next) {
                            let cycle = way[*first..].iter().map(|(job, _)| *job);
                            return Some(cycle.chain([*next]).collect());
                        }
                        on_way.insert(*next, way.len());
                        way.push((*next, 0));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(waits_for: &[&[usize]]) -> Links {
        Links { waits_for: waits_for.iter().map(|of| of.to_vec()).collect(), others: 0 }
    }

    #[test]
    fn a_cycle_is_named_in_the_order_of_waiting() {
        assert_eq!(links(&[&[1], &[2], &[1]]).cycle(), Some(vec![1, 2, 1]));
        assert_eq!(links(&[&[], &[1]]).cycle(), Some(vec![1, 1]));
        assert_eq!(links(&[&[1, 2], &[3], &[3], &[]]).cycle(), None);
        assert_eq!(links(&[&[1, 2], &[3], &[3], &[2]]).cycle(), Some(vec![3, 2, 3]));
        assert_eq!(links(&[]).cycle(), None);
    }

    #[test]
    fn a_long_chain_and_a_dense_graph_are_searched_in_linear_time() {
        let chain: Vec<Vec<usize>> =
            (0..50_000).map(|n| if n == 0 { vec![] } else { vec![n - 1] }).collect();
        assert_eq!(Links { waits_for: chain, others: 0 }.cycle(), None);
        let dense: Vec<Vec<usize>> = (0..1000).map(|n| (0..n).collect()).collect();
        assert_eq!(Links { waits_for: dense, others: 0 }.cycle(), None);
    }
}
