//! How far the move from older programs has come.

use super::{Client, ClientError};
use crate::proto::legacy::{LegacyQueue, RhailibCircle};
use crate::store::{CircleState, LegacyState};

impl Client {
    /// What is to be seen of legacy queues, whether they are served or not.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn legacy_queues(
        &self,
        queues: &[LegacyQueue],
    ) -> Result<Vec<LegacyState>, ClientError> {
        Ok(self.store.legacy_states(queues).await?)
    }

    /// What is to be seen of circles of rhailib.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn rhailib_circles(
        &self,
        circles: &[RhailibCircle],
    ) -> Result<Vec<CircleState>, ClientError> {
        Ok(self.store.circle_states(circles).await?)
    }
}
