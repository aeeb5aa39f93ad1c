//! Duty: a queue whose first job waits for long is logged, once, and once more when it is over.

use std::time::Duration;

use tracing::{info, warn};

use super::{Duty, Round, Tally};
use crate::config::format_duration;
use crate::store::StoreError;

/// Looks at how long jobs wait.
pub(super) struct LongWaits;

impl Duty for LongWaits {
    const NAME: &'static str = "looking for long waits";

    async fn round(own: &Round, _: &Tally) -> Result<Duration, StoreError> {
        let long = own.settings.supervisor.wait_warning;
        if !long.is_zero() {
            for (queue, waited) in own.store.long_waits(long).await? {
                let bound = format_duration(long);
                match waited {
                    Some(waited) => warn!(
                        %queue,
                        waited_s = waited.as_secs(),
                        "the first job of this queue waits for longer than {bound}: are there \
                         enough actors for it?"
                    ),
                    None => {
                        info!(%queue, "no job of this queue waits for longer than {bound} any more");
                    }
                }
            }
        }
        Ok(own.settings.supervisor.sweep_interval)
    }
}
