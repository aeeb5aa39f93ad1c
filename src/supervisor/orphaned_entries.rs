//! Duty: removes index entries of jobs that no longer exist.

use super::duty::{Duty, DutyCounts, Next, Round};
use crate::store::{StoreError, WorkKind};

/// Removes orphaned index entries.
pub(super) struct OrphanedEntries;

impl Duty for OrphanedEntries {
    const NAME: &'static str = "removing orphaned index entries";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Next, StoreError> {
        let recovered = round.store.recover_orphans().await?;
        counts.note(Self::NAME, recovered);
        Ok(round.until(WorkKind::Orphans, round.long_pause()))
    }
}
