//! Duty: dispatches scheduled jobs and retries when they are due.

use std::sync::atomic::Ordering;

use tracing::info;

use super::duty::{Next, Round};
use crate::proto::report::JOB_COURSE;
use crate::store::{Dispatched, StoreError, WorkKind};

/// The jobs per round; if more are due, the next round follows at once.
const PER_ROUND: usize = 250;

/// Dispatches due jobs.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let kept = round.settings.job.kept();
    let Dispatched { jobs, next, notes } = round.store.dispatch_due(PER_ROUND, kept).await?;
    round.counts.dispatched.fetch_add(jobs as u64, Ordering::Relaxed);
    for note in &notes {
        info!(target: JOB_COURSE, job_id = %note.job_id, script_type = %note.script_type, "{note}");
    }
    if jobs > notes.len() {
        info!(jobs = jobs - notes.len(), "further jobs were due: dispatched to their queues");
    }
    // A look finds jobs that are scheduled for an earlier time meanwhile, and those that are due soon.
    Ok(round.until_due(WorkKind::Scheduled, next))
}
