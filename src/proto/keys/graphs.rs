//! The keys of graphs and batches as objects.

use super::{JobId, Keys};

impl Keys {
    /// Hash, TTL: a graph or batch.
    pub fn graph(&self, id: &JobId) -> String {
        self.key(format_args!("meta:graph:info:{id}"))
    }

    /// Sorted set, TTL: the jobs of a graph or batch, by their outcome and place.
    pub fn graph_jobs(&self, id: &JobId) -> String {
        self.key(format_args!("meta:graph:jobs:{id}"))
    }

    /// Sorted set: graphs and batches, by the time of their submission.
    pub fn graphs(&self) -> String {
        self.key(format_args!("meta:graph:index"))
    }
}
