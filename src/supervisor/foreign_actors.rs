//! Duty: what foreign actors run is noticed when it ends, and taken back when it never does.

use std::time::Duration;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Looks after what foreign actors run.
pub(super) struct ForeignActors;

impl Duty for ForeignActors {
    const NAME: &'static str = "looking after jobs of foreign actors";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let recovered = own
            .store
            .recover_foreign(
                own.settings.job.timeout,
                own.settings.supervisor.sweep_interval,
                own.settings.job.crash_limit,
                own.settings.job.kept(),
            )
            .await?;
        tally.note(Self::NAME, recovered);
        Ok(own.settings.supervisor.sweep_interval)
    }
}
