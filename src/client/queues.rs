//! Queues: lists, pauses, resumes and purges them.

use std::collections::BTreeSet;

use super::{Client, ClientError};
use crate::proto::job::JobId;
use crate::proto::queue::Queue;
use crate::proto::target::Target;
use crate::store::{Hindrance, QueueState};

impl Client {
    /// Lists every queue that may hold jobs or is paused, by name.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_queues(&self) -> Result<Vec<QueueState>, ClientError> {
        Ok(self.store.queue_states().await?)
    }

    /// Lists the targets that have live actors, waiting jobs or a paused queue, and every script
    /// type that ever had a job or an actor.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn known_targets(&self) -> Result<BTreeSet<Target>, ClientError> {
        Ok(self.store.known_targets().await?)
    }

    /// Returns the reason why a dispatched job does not start, if it has one.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn hindrance(&self, id: &JobId) -> Result<Option<Hindrance>, ClientError> {
        Ok(self.store.hindrance(id).await?)
    }

    /// Pauses a queue: no actor claims its jobs until it is resumed. Running jobs go on, and jobs
    /// may be submitted to it. Returns whether it was not paused before. A foreign actor that pops
    /// ids itself is not affected.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn pause_queue(&self, queue: &Queue) -> Result<bool, ClientError> {
        let news = self.store.pause(std::slice::from_ref(queue)).await?;
        Ok(news.contains(&true))
    }

    /// Resumes a paused queue. Returns whether it was paused.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn resume_queue(&self, queue: &Queue) -> Result<bool, ClientError> {
        let news = self.store.resume(std::slice::from_ref(queue)).await?;
        Ok(news.contains(&true))
    }

    /// Stops every job that waits in a queue, as [`Client::stop_job`] does. Jobs that run, or are
    /// pushed meanwhile, stay. Returns the number of stopped jobs.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the jobs before it are stopped.
    pub async fn purge_queue(&self, queue: &Queue) -> Result<u64, ClientError> {
        Ok(self.store.purge(queue, self.job.kept()).await?)
    }
}
