//! Duty: the declared indexes of objects are built, in every context, while all else goes on; those
//! that nobody declares any more are removed.

use std::time::{Duration, Instant};

use tracing::info;

use super::{Duty, Round, Tally};
use crate::store::StoreError;

/// Contexts that are looked at in one go.
const CONTEXTS: usize = 100;
/// How much longer than a walk through all contexts the pause after it is: where there are many
/// that need nothing, looking at them must not become what Redis is busy with.
const PAUSE: u32 = 10;

/// Builds and removes indexes.
pub(super) struct ObjectIndexes;

impl Duty for ObjectIndexes {
    const NAME: &'static str = "building indexes of objects";

    async fn round(own: &Round, _: &Tally) -> Result<Duration, StoreError> {
        let started = Instant::now();
        let mut after = None;
        loop {
            let config = &own.settings.osis;
            let tended = own.store.tend_object_indexes(config, after.as_ref(), CONTEXTS).await?;
            for index in &tended.built {
                let (object_type, field) = (&index.object_type, &index.field);
                info!(context = %index.context, "the index on {object_type}.{field} is built");
            }
            for index in &tended.removed {
                let (object_type, field) = (&index.object_type, &index.field);
                info!(
                    context = %index.context,
                    "the index on {object_type}.{field} is gone: it was not declared any more"
                );
            }
            after = tended.last;
            if after.is_none() {
                break;
            }
        }
        let pause = started.elapsed().saturating_mul(PAUSE).max(Duration::from_secs(1));
        Ok(pause.max(own.settings.supervisor.sweep_interval))
    }
}
