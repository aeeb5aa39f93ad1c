//! The number of jobs that wait in a queue. Its list has entries of jobs that were stopped or deleted until a sweep removes
//! them, and its ready index lacks what programs pushed until it is adopted: neither length alone is the number.

use std::collections::HashSet;

use super::text::StoredText;
use super::{Store, StoreError};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::queue::Queue;

/// The entries at each end of a list that are compared with its ready index.
const COMPARED: i64 = 500;

#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLengths {
    /// Entries in its list.
    pub(super) list: u64,
    /// Entries in its ready index.
    pub(super) ready: u64,
}

impl Store {
    /// Returns the number of jobs that wait in a queue: the length of its ready index, and the jobs that programs pushed, as
    /// far as they stand at the ends of its list.
    pub(super) async fn depth_of(
        &self,
        queue: &Queue,
        lengths: QueueLengths,
    ) -> Result<u64, StoreError> {
        const DOING: &str = "counting the jobs of a queue";
        if lengths.list <= lengths.ready {
            return Ok(lengths.list);
        }
        let entries = self.keys.work(queue);
        let first: Vec<StoredText> =
            self.link.command(DOING, "LRANGE", (&entries, 0, COMPARED - 1)).await?;
        let last: Vec<StoredText> =
            self.link.command(DOING, "LRANGE", (&entries, -COMPARED, -1)).await?;
        let ids: HashSet<String> = first.into_iter().chain(last).map(String::from).collect();
        let ids: Vec<JobId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let ready = self.keys.ready(queue);
        let score = |id: &JobId| ("ZSCORE", (ready.clone(), id.to_string()));
        let scores: Vec<Option<Option<f64>>> = self.link.each(DOING, &ids, score).await?;
        let others = ids.iter().zip(scores).filter(|(_, score)| *score == Some(None));
        let others: Vec<&JobId> = others.map(|(id, _)| id).collect();
        let in_hash = |id: &&JobId| ("HGET", (self.keys.job(id), "status"));
        let states: Vec<Option<Option<String>>> = self.link.each(DOING, &others, in_hash).await?;
        let is_waiting = |state: &Option<Option<String>>| {
            let state = state.as_ref().and_then(Option::as_deref);
            state == Some(JobStatus::Dispatched.as_str())
        };
        let pushed = states.iter().filter(|state| is_waiting(state)).count() as u64;
        // Without a stale entry at its ends, a list has none: programs push faster than they are adopted.
        let all = if pushed == others.len() as u64 && pushed > 0 {
            lengths.list
        } else {
            lengths.ready + pushed
        };
        Ok(all.min(lengths.list))
    }
}
