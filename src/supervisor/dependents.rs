//! Duty: goes on with what takes more than one step: notifies the dependents that were too many for
//! the step that ended their prerequisite, and commits atomic batches whose client has gone. Logs the
//! jobs that ended with their prerequisite, which no actor had.

use tracing::info;

use super::duty::{Next, Round};
use crate::proto::report::JOB_FAILURE;
use crate::store::{StoreError, WorkKind};

/// Notes on jobs that one call takes.
const NOTES_PER_STEP: usize = 500;

/// Notifies dependents.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let kept = round.settings.job.kept();
    let more_to_tell = round.store.settle(kept).await?;
    let more_to_commit = round.store.commit_left(kept).await?;
    let notes = round.store.take_notes(NOTES_PER_STEP).await?;
    for note in &notes {
        info!(target: JOB_FAILURE, job_id = %note.job_id, script_type = %note.script_type, "{note}");
    }
    let more_to_log = notes.len() == NOTES_PER_STEP;
    let next = round.until(WorkKind::Unsettled, round.settings.supervisor.sweep_interval);
    Ok(next.unless_more(more_to_tell || more_to_commit || more_to_log))
}
