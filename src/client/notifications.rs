//! Notifications: the latest deliveries, and a test of one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotificationClient, Result};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::notification::{DeliveryRecord, NotifyName};
use crate::proto::text::{did_you_mean, nearest};

#[derive(Debug, Clone, Default)]
pub struct LatestDeliveries {
    /// Their ends, the newest first.
    pub recent: Vec<DeliveryRecord>,
    /// The notifications whose last attempt to deliver failed.
    pub failing: Vec<DeliveryRecord>,
}

/// A message that gathers events until it may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldMessage {
    /// The notification.
    pub notification: NotifyName,
    /// The number of events that it tells so far.
    pub events: u64,
    /// The time when it is sent, RFC 3339.
    pub due: String,
}

impl NotificationClient<'_> {
    pub async fn deliveries(self, limit: usize) -> Result<LatestDeliveries> {
        let (recent, failing) = self.client.store.notifications().deliveries(limit).await?;
        Ok(LatestDeliveries { recent, failing })
    }

    /// Lists the messages that are held until the `every` of their notification has passed.
    pub async fn held(self) -> Result<Vec<HeldMessage>> {
        let look = self.client.store.notifications().look().await?;
        let held = look.states.values().filter(|state| look.now_ms < state.gathers_until_ms);
        let ids: Vec<String> = held.map(|state| state.gathers.clone()).collect();
        let found = self.client.store.notifications().messages(&ids).await?;
        let held = found.into_iter().filter_map(|(message, due_ms)| {
            let due = Timestamp::from_millisecond(i64::try_from(due_ms).ok()?).ok()?;
            let events = message.counts.values().sum();
            Some(HeldMessage { notification: message.to, events, due: format!("{due:.3}") })
        });
        Ok(held.collect())
    }

    /// Counts the ends of attempts to deliver, by `NAME STATE`.
    pub async fn counts(self) -> Result<BTreeMap<String, u64>> {
        Ok(self.client.store.notifications().look().await?.counts)
    }

    /// Refuses the name of a notification that supervisors do not have, as far as a configuration tells: one that has some, or
    /// is a supervisor's.
    ///
    /// # Errors
    /// [`Exit::NotFound`] with the names that it has.
    pub async fn check(self, name: &NotifyName, config: &Config) -> Result<(), Error> {
        let names = || config.notify.keys().map(NotifyName::as_str);
        if config.notify.contains_key(name) {
            return Ok(());
        }
        let hint = if config.notify.is_empty() {
            let digest = config.digest();
            if self.client.system().supervisors().await?.iter().all(|of| of.settings != digest) {
                return Ok(());
            }
            "; it has none: see [notify.NAME] in hero.toml(5)".to_owned()
        } else {
            match nearest(name.as_str(), names()) {
                None => format!("; it has: {}", names().collect::<Vec<_>>().join(", ")),
                near => did_you_mean(near),
            }
        };
        Err(Error::new(Exit::NotFound, format!("this configuration has no [notify.{name}]{hint}")))
    }

    /// Asks the supervisors to send a test by a notification. Returns the id of its message.
    pub async fn test(self, name: &NotifyName) -> Result<String> {
        let id = self.client.store.notifications().test(name).await?;
        self.client.audit().note("notify.test", name).await;
        Ok(id)
    }

    /// Waits until a message has been delivered, or an attempt has failed; `None` if neither happens in time.
    pub async fn await_delivery(
        self,
        id: &str,
        patience: Duration,
    ) -> Result<Option<DeliveryRecord>> {
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
