//! Duty: removes index entries of jobs that no longer exist.

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// Removes orphaned index entries.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let recovered = round.store.recover_orphans().await?;
    round.counts.note(round.name, recovered);
    Ok(round.until(WorkKind::Orphans, round.long_pause()))
}
