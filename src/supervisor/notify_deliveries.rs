//! Duty: delivers the messages of `[notify.NAME]`, each at least once; with backoff for an hour.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tracing::{info, warn};

use super::deliver::deliver;
use super::duty::{Next, Round};
use crate::proto::notification::NotifyMessage;
use crate::store::StoreError;

/// The messages that are delivered at the same time.
const PER_ROUND: usize = 16;
/// The time that is left to record what became of a message, before another supervisor takes it.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Delivers messages.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let notify = &round.settings.notify;
    let Some(timeout) = notify.values().map(|notify| notify.timeout).max() else {
        return Ok(Next::After(round.long_pause()));
    };
    // One message may go several ways, one after the other.
    let lease = timeout.saturating_mul(4) + LEASE_MARGIN;
    let taken = round.store.notify_take(PER_ROUND, lease).await?;
    let is_full = taken.len() == PER_ROUND;
    let ended = join_all(taken.into_iter().map(|message| attempt(&round, message))).await;
    ended.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(Next::After(round.settings.supervisor.sweep_interval).unless_more(is_full))
}

/// Tries to deliver a message, and records what became of it.
async fn attempt(round: &Round, mut message: NotifyMessage) -> Result<(), StoreError> {
    let delivered = match round.settings.notify.get(&message.to) {
        Some(notify) => deliver(notify, &message).await,
        None => {
            Err(format!("[notify.{}] is not in the configuration of this supervisor", message.to))
        }
    };
    let at = format!("{:.3}", Timestamp::now());
    let (name, title) = (message.to.clone(), message.title());
    match delivered {
        Ok(()) => {
            let record = message.record(at, "", false);
            if round.store.notify_done(&message, &record, None).await? {
                info!(notification = %name, message_id = %message.id, "told {name}: {title}");
            }
        }
        Err(error) => {
            let now_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
            let again_ms = message.failed(now_ms);
            let record = message.record(at, &error, again_ms.is_some());
            if round.store.notify_done(&message, &record, again_ms).await? {
                let then = match again_ms {
                    Some(_) => "trying again",
                    None if message.is_test() => "a test is tried once",
                    None => "given up after an hour",
                };
                warn!(
                    notification = %name, message_id = %message.id,
                    "cannot deliver to {name}: {}; {then}: {title}", record.error
                );
            }
        }
    }
    Ok(())
}
