//! Notices the pushes of older clients, even if an old worker pops them at once: the next phase of a
//! migration starts when both have become idle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tracing::debug;

use super::duty::{DutyCounts, SupervisorSettings};
use crate::store::{Backoff, Blocking, Store, StoreError};

/// The duration of one wait. Redis serves the client that has waited longest, so an entry is seen here
/// before an old worker that started to wait later pops it.
const WAIT: Duration = Duration::from_secs(30);

/// Watches a legacy queue until the task is dropped.
pub(super) async fn run(
    store: Store,
    settings: watch::Receiver<Arc<SupervisorSettings>>,
    list: String,
    counts: Arc<DutyCounts>,
) {
    let mut blocking = store.blocking();
    let mut backoff = Backoff::default();
    loop {
        counts.rounds.fetch_add(1, Ordering::Relaxed);
        match round(&store, &settings, &mut blocking, &list).await {
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

/// Waits for an entry, and checks after a pause whether it was popped.
async fn round(
    store: &Store,
    settings: &watch::Receiver<Arc<SupervisorSettings>>,
    blocking: &mut Blocking,
    list: &str,
) -> Result<(), StoreError> {
    let Some(entry) = blocking.peek(list, WAIT).await? else {
        return Ok(());
    };
    let pushed = store.note_legacy_push(list, &entry).await?;
    let pause = settings.borrow().supervisor.sweep_interval;
    tokio::time::sleep(pause).await;
    if let Some(id) = pushed {
        store.note_legacy_pop(list, &id).await?;
    }
    Ok(())
}
