//! Duty: polls for the work of all other duties in one call. Most of the time there is none, and they rest.

use std::time::Duration;

use super::duty::{Next, Round};
use crate::store::{Outlook, StoreError, WorkKind};

/// Polls for work.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let pause = round.settings.supervisor.sweep_interval;
    let mut outlook = match round.store.look().await {
        Ok(outlook) => outlook,
        Err(error) => {
            // Without an answer each duty polls by itself. While Redis is away none can.
            if !error.is_outage() {
                round.counts.outlook.send_replace(Outlook::unknown());
            }
            return Err(error);
        }
    };
    let is_due_soon = |next: Duration| next <= pause;
    let also = [
        (WorkKind::Scheduled, outlook.next_due.is_some_and(is_due_soon)),
        (
            WorkKind::Crontab,
            !round.counts.crontab.is_of(&round.settings.crontab, outlook.cron_revision.as_deref()),
        ),
    ];
    outlook.work.extend(also.into_iter().filter(|(_, is_there)| *is_there).map(|(of, _)| of));
    round.counts.outlook.send_replace(outlook);
    round.counts.rests_for(pause);
    Ok(Next::After(pause))
}
