//! Duties: the queues and control lists of script types.

use std::sync::atomic::Ordering;

use tracing::{info, warn};

use super::duty::{Next, Round};
use crate::config::format_duration;
use crate::store::{AdoptionRules, AfterAdoption, StoreError, WorkKind};

/// The steps that one sweep takes on a list.
const STEPS_MAX: usize = 20;

/// Forwards control messages for a script type, or for a group of it, to each of its live actors.
pub(super) async fn control(round: Round) -> Result<Next, StoreError> {
    let handed_on =
        round.store.actors().fan_out(round.settings.actor.lease, round.kept(), None).await?;
    round.counts.forwarded.fetch_add(handed_on.messages, Ordering::Relaxed);
    let pause = round.sweep();
    // The next round has to notice when foreign actors have taken them.
    Ok(if handed_on.are_left { Next::After(pause) } else { round.until(WorkKind::Control, pause) })
}

/// Moves jobs from group and instance queues without live actors to the next wider queue, where they may go there.
pub(super) async fn fallbacks(round: Round) -> Result<Next, StoreError> {
    let after = round.settings.supervisor.fallback_after;
    for note in round.store.recovery().fall_back(after, &round.settings.fallbacks).await? {
        info!(job_id = %note.job_id, script_type = %note.script_type, "{note}");
    }
    Ok(round.until(WorkKind::Queues, round.sweep()))
}

/// Logs a queue whose first job waits for long, once, and once more when that is over.
pub(super) async fn long_waits(round: Round) -> Result<Next, StoreError> {
    let long = round.settings.supervisor.wait_warning;
    if !long.is_zero() {
        for (queue, waited) in round.store.stats().long_waits(long).await? {
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

/// Adopts jobs that programs pushed with plain commands, so that they are seen, counted and recovered as all others: the
/// entries of lists that no message reported.
pub(super) async fn foreign_jobs(round: Round) -> Result<Next, StoreError> {
    let rules = AdoptionRules::from(&round.settings.job);
    for list in round.store.legacy().unadopted().await? {
        for _ in 0..STEPS_MAX {
            if round.store.legacy().adopt(&list, rules).await?.next != AfterAdoption::More {
                break;
            }
        }
    }
    Ok(round.until(WorkKind::Queues, round.long_pause()))
}
