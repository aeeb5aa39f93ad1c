//! Queues as a whole: look at them, pause them, let them go on, empty them.

use super::{Client, ClientError};
use crate::proto::queue::Queue;
use crate::store::QueueState;

impl Client {
    /// Every queue that may hold jobs or is paused, in order of their names.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_queues(&self) -> Result<Vec<QueueState>, ClientError> {
        Ok(self.store.queue_states().await?)
    }

    /// Pauses a queue: jobs may be submitted to it, and no actor takes them until it is resumed;
    /// those that run go on. Returns whether it was not paused before. A foreign actor that pops
    /// by itself is not held.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn pause_queue(&self, queue: &Queue) -> Result<bool, ClientError> {
        let news = self.store.pause(std::slice::from_ref(queue)).await?;
        Ok(news.contains(&true))
    }

    /// Lets a paused queue go on. Returns whether it was paused.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn resume_queue(&self, queue: &Queue) -> Result<bool, ClientError> {
        let news = self.store.resume(std::slice::from_ref(queue)).await?;
        Ok(news.contains(&true))
    }

    /// Ends every job that waits in a queue in `error`, as [`Client::stop_job`] would. What comes
    /// into it meanwhile stays, and so does what runs. Returns how many jobs that were.
    ///
    /// # Errors
    /// [`ClientError::Store`], with the jobs before it ended.
    pub async fn purge_queue(&self, queue: &Queue) -> Result<u64, ClientError> {
        Ok(self.store.purge(queue, self.job.kept()).await?)
    }
}
