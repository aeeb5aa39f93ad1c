//! What older clients push is noticed, even if an old worker takes it at once: whether both have
//! fallen silent is what the next phase of a migration waits for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::debug;

use super::{Supervisor, Tally};
use crate::store::{Backoff, Blocking, StoreError};

/// How long one wait lasts. Redis serves whoever has waited for the longest, so an entry is seen
/// before an old worker has it if that worker has begun to wait later than this.
const WAIT: Duration = Duration::from_secs(30);

/// Watches a legacy queue for ever.
pub(super) async fn run(own: Supervisor, list: String, tally: Arc<Tally>) {
    let mut blocking = own.store.blocking();
    let mut backoff = Backoff::default();
    loop {
        tally.rounds.fetch_add(1, Ordering::Relaxed);
        match round(&own, &mut blocking, &list).await {
            Ok(()) => {
                backoff.succeeded();
            }
            Err(error) => {
                debug!(key = %list, "watching a legacy queue: {error}");
                tokio::time::sleep(backoff.failed()).await;
            }
        }
    }
}

/// Waits for an entry, and looks a while later what has become of it.
async fn round(own: &Supervisor, blocking: &mut Blocking, list: &str) -> Result<(), StoreError> {
    let Some(entry) = blocking.peek_entry(list, WAIT).await? else {
        return Ok(());
    };
    let pushed = own.store.note_legacy_push(list, &entry).await?;
    let rest = own.settings.borrow().supervisor.sweep_interval;
    tokio::time::sleep(rest).await;
    if let Some(id) = pushed {
        own.store.note_legacy_pop(list, &id).await?;
    }
    Ok(())
}
