//! The jobs below a job: its children, their children, and so on.

use std::collections::VecDeque;

use super::change_many::ChangedJob;
use super::{Client, ClientError};
use crate::proto::job::JobId;

/// The most jobs below one job that are stopped with it.
const DESCENDANTS_MAX: usize = 20_000;

impl Client {
    /// Stops a job, and the jobs below it that have not ended. A job that was told to stop submits no more jobs.
    /// Returns what became of each; a job below it that has ended or is gone is left out. The first may have ended.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`] for the job itself; [`ClientError::Store`].
    pub(super) async fn stop_tree(&self, id: &JobId) -> Result<Vec<ChangedJob>, ClientError> {
        let mut told = Vec::new();
        let mut left = VecDeque::from([id.clone()]);
        let mut seen = 0;
        while let Some(job) = left.pop_front() {
            seen += 1;
            match self.stop_one(&job).await {
                Ok(true) => told.push((job.clone(), Ok("stopped".to_owned()))),
                Ok(false) => told.push((job.clone(), Ok(super::change_many::TOLD.to_owned()))),
                Err(ClientError::NoSuchJob(_)) if job != *id => continue,
                Err(ClientError::WrongState { .. }) => {}
                Err(error) => return Err(error),
            }
            // After its stop: from then on it gets no more.
            let room = DESCENDANTS_MAX.saturating_sub(seen + left.len());
            left.extend(self.children(&job).await?.into_iter().take(room));
        }
        Ok(told)
    }

    /// Returns the jobs that the script of a job has submitted; none if it is gone.
    pub async fn children(&self, id: &JobId) -> Result<Vec<JobId>, ClientError> {
        Ok(self.of(id)?.children(id).await?)
    }
}
