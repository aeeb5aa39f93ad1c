//! Duty: logs a queue whose first job waits for long, once, and once more when that is over.

use tracing::{info, warn};

use super::duty::{Next, Round};
use crate::config::format_duration;
use crate::store::{StoreError, WorkKind};

/// Checks how long jobs wait.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let long = round.settings.supervisor.wait_warning;
    if !long.is_zero() {
        for (queue, waited) in round.store.long_waits(long).await? {
            let bound = format_duration(long);
            match waited {
                Some(waited) => warn!(
                    %queue,
                    waited_s = waited.as_secs(),
                    "the first job of queue {queue} waits for longer than {bound}: are there \
                     enough actors for it?"
                ),
                None => {
                    info!(%queue, "no job of queue {queue} waits for longer than {bound} any more");
                }
            }
        }
    }
    Ok(round.until(WorkKind::Queues, round.long_pause()))
}
