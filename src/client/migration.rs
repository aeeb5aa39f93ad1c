//! How far the move from older programs has come.

use std::sync::Arc;

use super::wait::Waiters;
use super::{Client, ClientError};
use crate::config::JobConfig;
use crate::proto::legacy::{LegacyQueue, RhailibCircle};
use crate::store::{CircleState, LegacyState, Store};

impl Client {
    /// A client of a store that knows whether there are queues with older names.
    pub(super) fn on(store: Store, job: JobConfig) -> Self {
        Self { waiters: Arc::new(Waiters::new(store.clone())), store, job }
    }

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
