//! Duty: finds jobs of foreign programs that stand in no index, since an actor that waited popped their ids before Hero
//! knew of them.

use tracing::warn;

use super::duty::{Next, Round};
use crate::store::{StoreError, WorkKind};

/// The pause between two walks, as a multiple of the sweep interval.
const WALK_FACTOR: u32 = 10;

/// Looks at noted jobs, and at some of all jobs.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let supervisor = &round.settings.supervisor;
    let pause = supervisor.sweep_interval.saturating_mul(WALK_FACTOR);
    let kept = round.settings.job.kept();
    let found = round.store.find_unindexed(supervisor.foreign, pause, kept).await?;
    round.counts.note(round.name, found.recovered);
    if let Some((number, one)) = found.untyped {
        warn!(
            "{number} jobs of other programs are dispatched or started, stand in no queue and name no script type, \
             such as {one}: the programs that popped them may have died, and nobody can tell their queue; write `script_type`"
        );
    }
    Ok(round.until_due(WorkKind::Unindexed, supervisor.foreign.then_some(found.next)))
}
