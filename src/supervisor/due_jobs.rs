//! Duties: jobs whose time, prerequisite or limit lets them go on or ends them. If more are due than one round
//! takes, the next round follows at once.

use std::sync::atomic::Ordering;

use tracing::{debug, info, warn};

use super::duty::{Next, Round};
use crate::proto::report::{JOB_COURSE, JOB_FAILURE};
use crate::store::{Dispatched, StoreError, WorkKind};

/// The scheduled jobs per round.
const DISPATCHED: usize = 250;
/// The jobs per round that are too late, expected, or kept for others.
const PER_ROUND: usize = 100;
/// The limits per round.
const LIMITS: usize = 25;
/// Notes on jobs that one call takes.
const NOTES: usize = 500;

/// Dispatches scheduled jobs and retries when they are due.
pub(super) async fn scheduled(round: Round) -> Result<Next, StoreError> {
    let Dispatched { jobs, next, notes } =
        round.store.schedule().dispatch_due(DISPATCHED, round.kept()).await?;
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

/// Ends jobs that did not start within the time that their submitter gave them.
pub(super) async fn expired(round: Round) -> Result<Next, StoreError> {
    let looked = round.store.schedule().expire_jobs(PER_ROUND, round.kept()).await?;
    if looked.ended > 0 {
        info!(jobs = looked.ended, "jobs did not start in time: ended as expired");
    }
    Ok(round.until_due(WorkKind::Expiring, looked.next).unless_more(looked.jobs == PER_ROUND))
}

/// Finds jobs and attempts that have not ended by the time by which their submitter expected it.
pub(super) async fn late(round: Round) -> Result<Next, StoreError> {
    let found = round.store.schedule().find_late(PER_ROUND).await?;
    for id in &found.late {
        warn!(job_id = %id, "job {id} is late: it has not ended within its expect_within");
    }
    for id in &found.slow {
        warn!(job_id = %id, "job {id} is slow: its attempt runs for longer than its slow_after");
    }
    Ok(round.until_due(WorkKind::Expected, found.next).unless_more(found.looked_at == PER_ROUND))
}

/// Retains ended jobs whose outputs and files other jobs may need: dependents that wait, and callbacks of their graph.
pub(super) async fn awaited(round: Round) -> Result<Next, StoreError> {
    let looked = round.store.schedule().keep_awaited(PER_ROUND).await?;
    Ok(round.until_due(WorkKind::Awaited, looked.next).unless_more(looked.jobs == PER_ROUND))
}

/// Goes on with what takes more than one step: notifies the dependents that were too many for the step that ended
/// their prerequisite, and commits atomic batches whose client has gone. Logs the jobs that ended with their
/// prerequisite, which no actor had.
pub(super) async fn dependents(round: Round) -> Result<Next, StoreError> {
    let more_to_tell = round.store.schedule().settle(round.kept()).await?;
    let more_to_commit = round.store.batches().commit_left(round.kept()).await?;
    let notes = round.store.schedule().take_notes(NOTES).await?;
    for note in &notes {
        info!(target: JOB_FAILURE, job_id = %note.job_id, script_type = %note.script_type, "{note}");
    }
    let next = round.until(WorkKind::Unsettled, round.sweep());
    Ok(next.unless_more(more_to_tell || more_to_commit || notes.len() == NOTES))
}

/// Releases held jobs to try again when the period of a rate has passed, or when a slot may be free without notice.
pub(super) async fn held(round: Round) -> Result<Next, StoreError> {
    let tended = round.store.limits().tend(LIMITS).await?;
    if tended.taken_back > 0 {
        info!(slots = tended.taken_back, "freed slots of jobs that no longer run");
    }
    if tended.released > 0 {
        debug!(jobs = tended.released, "released held jobs to try again");
    }
    // A look finds limits that begin to hold jobs meanwhile.
    Ok(round.until_due(WorkKind::Limits, tended.next))
}
