//! The end of a life whose lease is lost: its jobs are somebody else's, so their scripts are told
//! to stop and nothing of them is written any more. Only what was popped and never claimed goes
//! back to where it came from.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use tracing::{debug, warn};

use super::{Fetch, drain};
use crate::actor::life::Life;
use crate::engine::StopReason;
use crate::store::Woken;

/// How long a Redis that is away may keep the new life from beginning.
const PATIENCE: Duration = Duration::from_secs(2);

impl Fetch {
    /// Returns once the scripts have ended, or had the time to.
    pub(in crate::actor) async fn abandon(&mut self) {
        for (id, running) in &self.running {
            warn!(job_id = %id, "lost the job with the lease: it runs again elsewhere, and its script is stopped here");
            running.cancel.request(StopReason::LeaseLost);
        }
        for id in self.endings.ids() {
            warn!(job_id = %id, "lost the job with the lease before its end was recorded: it runs again");
        }
        self.return_pops().await;
        let grace = Instant::now() + self.settings.job.kill_grace + drain::LAST_WORDS;
        while !self.running.is_empty() {
            match timeout_at(grace, self.outcomes.recv()).await {
                Ok(Some(outcome)) => self.running.remove(&outcome.job.id),
                Ok(None) | Err(_) => break,
            };
        }
    }

    /// Puts back what was popped and not claimed. A supervisor would find lost ids of Hero's own
    /// jobs, but not those that a foreign program pushed.
    async fn return_pops(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut popped: Vec<Woken> = self.popped.drain(..).map(|(_, woken)| woken).collect();
        // A dead boot's claim puts its pops back itself.
        if let Some(claiming) = self.claiming.take()
            && let Ok(claims) = timeout_at(until, claiming).await
        {
            popped.extend(claims.popped.into_iter().map(|(_, woken)| woken));
        }
        if let Some(waiting) = self.waiting.take() {
            let woken = timeout_at(until, self.life.store.wake(&self.waker)).await;
            if matches!(woken, Ok(Ok(())))
                && let Ok((_, Ok(Some(woken)))) = timeout_at(until, waiting).await
            {
                popped.push(woken);
            }
        }
        for woken in popped {
            put_back(&self.life, &woken).await;
        }
    }
}

async fn put_back(life: &Life, woken: &Woken) {
    match timeout(PATIENCE, life.store.put_back(woken)).await {
        Ok(Ok(())) => debug!(key = %woken.list, "put back what was popped and not claimed"),
        Ok(Err(error)) => warn!(key = %woken.list, "cannot put back what was popped: {error}"),
        Err(_) => {
            warn!(key = %woken.list, "cannot put back what was popped: redis does not answer");
        }
    }
}
