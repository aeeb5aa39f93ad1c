//! Duty: removes index entries of jobs that no longer exist.

use std::time::Duration;

use super::duty::{Duty, DutyCounts, Round};
use crate::store::StoreError;

/// Removes orphaned index entries.
pub(super) struct OrphanedEntries;

impl Duty for OrphanedEntries {
    const NAME: &'static str = "removing orphaned index entries";

    async fn round(round: &Round, counts: &DutyCounts) -> Result<Duration, StoreError> {
        let recovered = round.store.recover_orphans().await?;
        counts.note(Self::NAME, recovered);
        Ok(round.long_pause())
    }
}
