//! Periodic jobs, as those see them who ask what became of them.

use super::{Client, ClientError};
use crate::proto::cron::CronName;
use crate::store::LastFiring;

impl Client {
    /// What is known of the last firing of a periodic job; none if it has never fired.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn last_firing(&self, name: &CronName) -> Result<Option<LastFiring>, ClientError> {
        Ok(self.store.last_firing(name).await?)
    }
}
