//! Dead letters, one by one and in bulk.

use super::{Client, ClientError};
use crate::proto::job::{Job, JobId, JobStatus};
use crate::store::{DeadCursor, DeadFilter, DeadPage, DeleteOutcome, RetryOutcome, Store};

/// What became of many dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeadTally {
    /// Those that were run again, or deleted.
    pub done: u64,
    /// Those that could not be: another job holds their unique key, or their fields name no legal
    /// queue.
    pub left: u64,
}

impl Client {
    /// One page of dead letters, type by type, the newest of a type first; `limit` is bounded by
    /// [`Store::DEAD_PAGE_MAX`].
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_dead(
        &self,
        filter: &DeadFilter,
        limit: usize,
        after: Option<&DeadCursor>,
    ) -> Result<DeadPage, ClientError> {
        Ok(self.store.list_dead(filter, limit, after).await?)
    }

    /// Reads a dead letter, whole.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::NoDeadLetter`] if it is a job of another kind.
    pub async fn dead_letter(&self, id: &JobId) -> Result<Job, ClientError> {
        let job = self.get_job(id).await?;
        let dead = match &job.spec.script_type {
            Some(script_type) if job.status == JobStatus::Error => {
                self.store.is_dead(script_type, id).await?
            }
            _ => false,
        };
        if dead {
            Ok(job)
        } else {
            Err(ClientError::NoDeadLetter { id: id.clone(), status: job.status })
        }
    }

    /// Runs every dead letter that the filter means once more, attempts and crashes counted anew.
    /// Each is moved in one atomic step; those that die anew meanwhile are not run a third time.
    ///
    /// # Errors
    /// [`ClientError::Store`], with those before it moved.
    pub async fn retry_dead(&self, filter: &DeadFilter) -> Result<DeadTally, ClientError> {
        self.each_dead(filter, async |id| {
            Ok(match self.store.retry(id).await? {
                RetryOutcome::Moved(_) => Some(true),
                RetryOutcome::Illegal | RetryOutcome::Duplicate(_) => Some(false),
                // Somebody else was faster.
                RetryOutcome::Missing | RetryOutcome::Refused(_) => None,
            })
        })
        .await
    }

    /// Deletes every dead letter that the filter means, with its log.
    ///
    /// # Errors
    /// [`ClientError::Store`], with those before it deleted.
    pub async fn delete_dead(&self, filter: &DeadFilter) -> Result<DeadTally, ClientError> {
        self.each_dead(filter, async |id| {
            Ok(match self.store.delete(id, self.job.kept()).await? {
                DeleteOutcome::Deleted => Some(true),
                // Somebody else was faster.
                DeleteOutcome::Missing | DeleteOutcome::Running => None,
            })
        })
        .await
    }

    /// Does something to each dead letter, page by page. A page goes from newer to older ones, so
    /// what is added meanwhile is not met.
    async fn each_dead(
        &self,
        filter: &DeadFilter,
        act: impl AsyncFn(&JobId) -> Result<Option<bool>, ClientError>,
    ) -> Result<DeadTally, ClientError> {
        let mut tally = DeadTally::default();
        let mut after = None;
        loop {
            let page = self.list_dead(filter, Store::DEAD_PAGE_MAX, after.as_ref()).await?;
            for letter in &page.items {
                match act(&letter.id).await? {
                    Some(true) => tally.done += 1,
                    Some(false) => tally.left += 1,
                    None => {}
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(tally),
            }
        }
    }
}
