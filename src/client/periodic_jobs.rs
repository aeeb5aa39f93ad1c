//! The last firings of periodic jobs.

use super::{Client, ClientError};
use crate::proto::cron::CronName;
use crate::store::LastFiring;

impl Client {
    /// Reads the last firing of a periodic job; `None` if it has never fired.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn last_firing(&self, name: &CronName) -> Result<Option<LastFiring>, ClientError> {
        Ok(self.store.last_firing(name).await?)
    }
}
