//! Notifications: the latest deliveries, and a test of one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Client, ClientError};
use crate::proto::notification::{DeliveryRecord, NotifyName};

/// The latest deliveries of notifications.
#[derive(Debug, Clone, Default)]
pub struct LatestDeliveries {
    /// Their ends, the newest first.
    pub recent: Vec<DeliveryRecord>,
    /// The notifications whose last attempt to deliver failed.
    pub failing: Vec<DeliveryRecord>,
}

impl Client {
    /// Lists the latest deliveries of notifications.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn deliveries(&self, limit: usize) -> Result<LatestDeliveries, ClientError> {
        let (recent, failing) = self.store.deliveries(limit).await?;
        Ok(LatestDeliveries { recent, failing })
    }

    /// Counts the ends of attempts to deliver, by `NAME STATE`.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn notification_counts(&self) -> Result<BTreeMap<String, u64>, ClientError> {
        Ok(self.store.notify_look().await?.counts)
    }

    /// Asks the supervisors to send a test by a notification. Returns the id of its message.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn test_notification(&self, name: &NotifyName) -> Result<String, ClientError> {
        let id = self.store.notify_test(name).await?;
        self.note("notify.test", name).await;
        Ok(id)
    }

    /// Waits until a message has been delivered, or an attempt has failed; `None` if neither happens in time.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn await_delivery(
        &self,
        id: &str,
        patience: Duration,
    ) -> Result<Option<DeliveryRecord>, ClientError> {
        const LOOK: Duration = Duration::from_millis(100);
        const LOOKED_AT: usize = 100;
        let looking = async {
            loop {
                let LatestDeliveries { recent, failing } = self.deliveries(LOOKED_AT).await?;
                let found = recent.into_iter().chain(failing).find(|record| record.id == id);
                if found.is_some() {
                    return Ok(found);
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(patience, looking).await.unwrap_or(Ok(None))
    }
}
