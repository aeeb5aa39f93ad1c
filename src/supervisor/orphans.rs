//! Duty: index entries of jobs that are gone are removed.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Removes entries of jobs that are gone.
pub(super) struct Orphans;

impl Duty for Orphans {
    const NAME: &'static str = "removing orphans";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let recovered = own.store.recover_orphans().await?;
        tally.note(Self::NAME, recovered);
        Ok(own.settings.supervisor.sweep_interval)
    }
}
