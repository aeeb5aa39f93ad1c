//! The state of Redis, of the supervisors and of every script type.

use std::collections::BTreeMap;

use super::{Client, ClientError};
use crate::proto::job::JobStatus;
use crate::proto::message::SupervisorPresence;
use crate::proto::queue::Queue;
use crate::proto::target::ScriptType;
use crate::store::{QueueState, RedisState, TypeState};

impl Client {
    /// Returns the state of Redis, as far as its user may read it. `asks_config` reads `appendfsync`
    /// and `save` as a user of an access control list too; if that is forbidden, Redis logs it.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn redis_state(&self, asks_config: bool) -> Result<RedisState, ClientError> {
        Ok(self.store.redis_state(asks_config).await?)
    }

    /// Lists the live supervisors by unit and host.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_supervisors(&self) -> Result<Vec<SupervisorPresence>, ClientError> {
        Ok(self.store.supervisors().await?)
    }

    /// Counts the jobs of every script type that ever had a job or an actor.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_types(&self) -> Result<Vec<TypeState>, ClientError> {
        Ok(self.store.type_states().await?)
    }

    /// Counts the jobs of each state, the held ones among the dispatched.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn count_jobs(&self) -> Result<Vec<(JobStatus, u64)>, ClientError> {
        Ok(self.store.count_jobs().await?)
    }

    /// Lists every queue that may hold jobs or is paused, and these others, by name.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_queues_with(
        &self,
        others: impl IntoIterator<Item = Queue>,
    ) -> Result<Vec<QueueState>, ClientError> {
        Ok(self.store.queue_states_with(others.into_iter().collect()).await?)
    }

    /// Returns the counters of several script types, in their order.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn counters_of(
        &self,
        types: &[ScriptType],
    ) -> Result<Vec<BTreeMap<String, u64>>, ClientError> {
        Ok(self.store.counters_of(types).await?)
    }
}
