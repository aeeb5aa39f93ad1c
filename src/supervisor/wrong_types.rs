//! Duty: logs the keys that scripts found to have the wrong type.

use std::time::Duration;

use tracing::error;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The time between two log lines about one key.
const AGAIN: Duration = Duration::from_mins(10);

/// Logs keys with a wrong type.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let found = round.store.report_wrong_types(AGAIN).await?;
    if !found.is_empty() {
        let keys: Vec<String> = found.iter().map(|(key, of)| format!("{key} ({of})")).collect();
        error!(
            "keys have the wrong type and are treated as absent; a foreign program or a person \
             wrote them; delete them: {}",
            keys.join(", ")
        );
    }
    Ok(round.until(WorkKind::WrongTypes, round.long_pause()))
}
