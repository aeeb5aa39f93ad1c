//! The keys of graphs and batches as objects.

use super::{JobId, spell};

spell! {
    /// Hash, TTL: a graph or batch.
    graph(id: &JobId) = "meta:graph:info:{id}";

    /// Sorted set, TTL: the jobs of a graph or batch, by their outcome and place.
    graph_jobs(id: &JobId) = "meta:graph:jobs:{id}";

    /// Sorted set: graphs and batches, by the time of their submission.
    graphs() = "meta:graph:index";

    /// String, TTL: exists while a graph or batch may have a window.
    graph_windows() = "meta:graph:windows";
}
