//! Duty: periodic jobs are submitted when they are due, each once however many supervisors run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tracing::{error, info, warn};

use super::{Duty, Round, Tally};
use crate::config::CronEntry;
use crate::store::{Fired, StoreError};

/// Firings of one job in one round; with more due, the next round follows at once.
const FIRINGS_PER_ROUND: usize = 100;

/// Fires what is due.
pub(super) struct Cron;

impl Duty for Cron {
    const NAME: &'static str = "firing periodic jobs";

    async fn round(own: &Round, tally: &Tally) -> Result<Duration, StoreError> {
        let entries = &own.settings.crontab.entries;
        // New settings are seen as soon as anything else is.
        let longest = own.settings.supervisor.sweep_interval;
        if entries.is_empty() {
            return Ok(longest);
        }
        let names = entries.iter().map(|entry| &entry.name);
        let (now, state) = own.store.cron_state(names).await?;
        let mut next = longest;
        for (entry, last) in entries.iter().zip(state) {
            let due = entry.schedule.due(last, now, entry.catch_up);
            let left = due.len().saturating_sub(FIRINGS_PER_ROUND);
            for at in due.into_iter().take(FIRINGS_PER_ROUND) {
                fire(own, tally, entry, at).await?;
            }
            if left > 0 {
                next = Duration::ZERO;
            }
            next = next.min(until_next(entry, now));
        }
        Ok(next)
    }
}

/// How long from now on until a job is due again.
fn until_next(entry: &CronEntry, now: Timestamp) -> Duration {
    let next = entry.schedule.next_after(now);
    next.and_then(|next| next.duration_since(now).try_into().ok()).unwrap_or(Duration::MAX)
}

async fn fire(
    own: &Round,
    tally: &Tally,
    entry: &CronEntry,
    due: Timestamp,
) -> Result<(), StoreError> {
    let job = entry.job(due);
    let retention = own.settings.job.kept();
    match own.store.fire(&entry.name, due, entry.overlap, &job, retention).await? {
        Fired::Job(id) => {
            tally.fired.fetch_add(1, Ordering::Relaxed);
            info!(job_id = %id, cron = %entry.name, "due {due}: submitted");
        }
        Fired::Past => {}
        Fired::LeftOut(id) => {
            warn!(job_id = %id, cron = %entry.name, "due {due}: left out, as this job of an earlier firing is still on its way");
        }
        Fired::Failed(why) => {
            error!(cron = %entry.name, "due {due}: cannot be submitted: {why}");
        }
    }
    Ok(())
}
