//! Duty: releases held jobs to try again when the period of a rate has passed, or when a slot may be
//! free without notice.

use tracing::{debug, info};

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The limits per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 25;

/// Checks limits that hold jobs.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let tended = round.store.tend_limits(PER_ROUND).await?;
    if tended.taken_back > 0 {
        info!(slots = tended.taken_back, "freed slots of jobs that no longer run");
    }
    if tended.released > 0 {
        debug!(jobs = tended.released, "released held jobs to try again");
    }
    // A look finds limits that begin to hold jobs meanwhile.
    Ok(round.until_due(WorkKind::Limits, tended.next))
}
