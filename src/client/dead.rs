//! Dead letters: lists, retries and deletes them.

use super::{Client, ClientError};
use crate::proto::job::{Job, JobId, JobStatus};
use crate::proto::text::counted;
use crate::store::{DeadCursor, DeadFilter, DeadPage, DeleteOutcome, RetryOutcome, Shards, Store};

/// The result of an operation on many dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeadTally {
    /// Dead letters that were retried or deleted.
    pub done: u64,
    /// Dead letters that could not be: another job holds their unique key, their fields name no
    /// legal queue, or a prerequisite failed or is gone.
    pub left: u64,
}

/// A change of a dead letter.
#[derive(Clone, Copy)]
enum DeadLetterChange {
    Retry,
    Delete,
}

impl Client {
    /// Lists one page of dead letters, type by type, the newest first; `limit` is bounded by
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
        Ok(self.shards.list_dead(filter, limit, after).await?)
    }

    /// Reads a dead letter.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::NoDeadLetter`] if the job is not a dead letter.
    pub async fn dead_letter(&self, id: &JobId) -> Result<Job, ClientError> {
        let job = self.get_job(id).await?;
        let dead = match &job.spec.script_type {
            Some(script_type) if job.status == JobStatus::Error => {
                self.of(id)?.is_dead(script_type, id).await?
            }
            _ => false,
        };
        if dead {
            Ok(job)
        } else {
            Err(ClientError::NoDeadLetter { id: id.clone(), status: job.status })
        }
    }

    /// Retries every dead letter that matches the filter, with attempts and crashes counted from
    /// 0. Each moves in one atomic step; a job that dies again meanwhile is not retried twice.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the dead letters before it have moved.
    pub async fn retry_dead(&self, filter: &DeadFilter) -> Result<DeadTally, ClientError> {
        let tally = self.each_dead(filter, DeadLetterChange::Retry).await?;
        self.note("dead.retry", counted(tally.done, "dead letter", "dead letters")).await;
        Ok(tally)
    }

    /// Deletes every dead letter that matches the filter, and its log.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the dead letters before it are deleted.
    pub async fn delete_dead(&self, filter: &DeadFilter) -> Result<DeadTally, ClientError> {
        let tally = self.each_dead(filter, DeadLetterChange::Delete).await?;
        self.note("dead.delete", counted(tally.done, "dead letter", "dead letters")).await;
        Ok(tally)
    }

    /// Changes a dead letter. Returns whether it could; `None` if another client was faster.
    async fn change_dead(
        &self,
        id: &JobId,
        change: DeadLetterChange,
    ) -> Result<Option<bool>, ClientError> {
        Ok(match change {
            DeadLetterChange::Retry => match self.of(id)?.retry(id).await? {
                RetryOutcome::Moved(_) => Some(true),
                RetryOutcome::Illegal
                | RetryOutcome::Duplicate(_)
                | RetryOutcome::FailedPrerequisite(_)
                | RetryOutcome::LostPrerequisite(_) => Some(false),
                RetryOutcome::Missing | RetryOutcome::Refused(_) => None,
            },
            DeadLetterChange::Delete => match self.of(id)?.delete(id, self.job.kept()).await? {
                DeleteOutcome::Deleted => Some(true),
                DeleteOutcome::Missing | DeleteOutcome::Running => None,
            },
        })
    }

    /// Applies an operation to each dead letter, shard by shard and page by page. Pages go from newer to older, so
    /// dead letters added meanwhile are left out.
    async fn each_dead(
        &self,
        filter: &DeadFilter,
        change: DeadLetterChange,
    ) -> Result<DeadTally, ClientError> {
        let mut tally = DeadTally::default();
        for store in self.shards.all() {
            let (of_shard, mut after) = (Shards::from(store.clone()), None);
            loop {
                let page = of_shard.list_dead(filter, Store::DEAD_PAGE_MAX, after.as_ref()).await?;
                for letter in &page.items {
                    match self.change_dead(&letter.id, change).await? {
                        Some(true) => tally.done += 1,
                        Some(false) => tally.left += 1,
                        None => {}
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(tally)
    }
}
