//! The place of a waiting job in its queue.

use std::fmt;

use super::{Result, Store};
use crate::proto::job::{Job, JobStatus};
use crate::proto::queue::Queue;
use crate::proto::target::Priority;

/// The place of a waiting job in its queue, as text: `12 of 340 in type:bash, behind 3 more urgent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    pub queue: Queue,
    /// The place by the time of its dispatch, from 1.
    pub place: u64,
    /// The jobs that wait in the queue and that no limit holds.
    pub waiting: u64,
    /// The jobs that wait for the same target with a higher priority.
    pub more_urgent: u64,
}

impl fmt::Display for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, place, waiting, more_urgent } = self;
        write!(f, "{place} of {waiting} in {queue}")?;
        if *more_urgent > 0 { write!(f, ", behind {more_urgent} more urgent") } else { Ok(()) }
    }
}

impl Store {
    /// Returns the place of a job that waits in its queue; `None` for any other, and for one that a limit holds. Jobs in
    /// other queues of the same actors are not counted.
    pub async fn queue_place(&self, job: &Job) -> Result<Option<QueuePlace>> {
        const DOING: &str = "reading the place of a job in its queue";
        let queue = job.spec.queue().filter(|_| job.status == JobStatus::Dispatched);
        let Some(queue) = queue else { return Ok(None) };
        let rank = (self.keys.ready(&queue), job.id.as_str());
        let after: Option<u64> = self.link.command(DOING, "ZREVRANK", rank).await?;
        let Some(after) = after else { return Ok(None) };
        let priorities = Priority::ALL.into_iter().filter(|level| *level <= queue.priority);
        let ready = |priority| ("ZCARD", self.keys.ready(&Queue { priority, ..queue.clone() }));
        let numbers: Vec<Option<u64>> = self.link.each(DOING, priorities, ready).await?;
        let mut numbers: Vec<u64> = numbers.into_iter().flatten().collect();
        let waiting = numbers.pop().unwrap_or_default().max(after + 1);
        let (place, more_urgent) = (waiting - after, numbers.iter().sum());
        Ok(Some(QueuePlace { queue, place, waiting, more_urgent }))
    }
}
