//! Duty: builds the declared indexes of objects in every context, and removes those that are no longer
//! declared.

use std::time::{Duration, Instant};

use tracing::info;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The contexts per call of the store.
const CONTEXTS: usize = 100;
/// The pause after all contexts have been checked, as a multiple of the time for that: checking many
/// contexts must not keep Redis busy.
const PAUSE_FACTOR: u32 = 10;

/// Builds and removes indexes.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let started = Instant::now();
    let mut after = None;
    loop {
        let config = &round.settings.osis;
        let tended = round.store.tend_object_indexes(config, after.as_ref(), CONTEXTS).await?;
        for index in &tended.built {
            let (object_type, field) = (&index.object_type, &index.field);
            info!(context = %index.context, "the index on {object_type}.{field} is built");
        }
        for index in &tended.removed {
            let (object_type, field) = (&index.object_type, &index.field);
            info!(
                context = %index.context,
                "the index on {object_type}.{field} was removed: it is no longer declared"
            );
        }
        after = tended.last;
        if after.is_none() {
            break;
        }
    }
    let pause = started.elapsed().saturating_mul(PAUSE_FACTOR).max(Duration::from_secs(1));
    Ok(round.until(WorkKind::Objects, pause.max(round.long_pause())))
}
