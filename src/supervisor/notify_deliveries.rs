//! Duty: delivers the messages of `[notify.NAME]`, each at least once; with backoff for an hour.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tracing::{info, warn};

use super::deliver::{deliver, longest};
use super::deliveries::PendingDelivery;
use super::duty::{Next, Round};
use crate::proto::notification::NotifyMessage;
use crate::store::StoreError;

/// The messages that are delivered at the same time.
const PER_ROUND: usize = 16;
/// The time that is left to record what became of a message, before another supervisor takes it.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let notify = &round.settings.notify;
    let Some(longest) = notify.values().map(longest).max() else {
        return Ok(Next::After(round.long_pause()));
    };
    let lease = longest.saturating_add(LEASE_MARGIN);
    // The end of the supervisor waits for what is being taken as well.
    let Some(taking) = round.counts.deliveries.begin() else {
        return Ok(Next::After(round.long_pause()));
    };
    let taken = round.store.notifications().take(PER_ROUND, lease).await?;
    let begun: Vec<PendingDelivery<'_>> = taken.iter().map(|_| taking.another()).collect();
    drop(taking);
    let is_full = taken.len() == PER_ROUND;
    let ended = join_all(taken.into_iter().zip(begun).map(|of| attempt(&round, of))).await;
    ended.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(Next::After(round.sweep()).unless_more(is_full))
}

/// Tries to deliver a message, and records what became of it.
async fn attempt(
    round: &Round,
    (mut message, _begun): (NotifyMessage, PendingDelivery<'_>),
) -> Result<(), StoreError> {
    if let Some(url) = &round.settings.public_url {
        message.link_to(url);
    }
    let delivered = match round.settings.notify.get(&message.to) {
        Some(notify) => deliver(notify, &mut message).await,
        None => {
            Err(format!("[notify.{}] is not in the configuration of this supervisor", message.to))
        }
    };
    let at = format!("{:.3}", Timestamp::now());
    let (name, title) = (message.to.clone(), message.title());
    let is_failure = delivered.is_err();
    let reasons = [message.refused.join("; "), delivered.err().unwrap_or_default()];
    let reasons = reasons.into_iter().filter(|reason| !reason.is_empty());
    let error = reasons.collect::<Vec<_>>().join("; ");
    let mut again_ms = None;
    if is_failure {
        let now_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
        again_ms = message.failed(now_ms);
    } else if !error.is_empty() {
        message.attempts = message.attempts.saturating_add(1);
    }
    let record = message.record(at, &error, again_ms.is_some());
    if !round.store.notifications().done(&message, &record, again_ms).await? {
        return Ok(());
    }
    let (id, error) = (&message.id, &record.error);
    if is_failure {
        let then = match again_ms {
            Some(_) => "trying again",
            None if message.is_test() => "a test is tried once",
            None => "given up after an hour",
        };
        warn!(
            notification = %name, message_id = %id,
            "cannot deliver to {name}: {error}; {then}: {title}"
        );
    } else if error.is_empty() {
        info!(notification = %name, message_id = %id, "told {name}: {title}");
    } else {
        warn!(
            notification = %name, message_id = %id,
            "{name} refuses a message for good: {error}: {title}"
        );
    }
    Ok(())
}
