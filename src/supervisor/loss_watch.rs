//! Notices that Redis has lost all keys of the namespace, between two heartbeats of a supervisor.

use std::time::{Duration, Instant};

use tracing::error;

use crate::proto::text::counted;
use crate::store::{EmptiedRedis, Store, StoreError};

/// The time between two counts of jobs.
const COUNTED_EACH: Duration = Duration::from_secs(30);

/// The state of Redis at the last heartbeats.
#[derive(Default)]
pub(super) struct LossWatch {
    /// When the jobs were last counted; none before the first heartbeat.
    counted_at: Option<Instant>,
    jobs: u64,
    /// The mark of the data.
    mark: Option<String>,
    /// The process of Redis.
    run_id: Option<String>,
}

impl LossWatch {
    /// Checks a heartbeat. `mark` is the mark of the data, if Redis did not have the presence before it.
    pub(super) async fn watch(
        &mut self,
        store: &Store,
        mark: Option<String>,
    ) -> Result<(), StoreError> {
        let is_due = self.counted_at.is_none_or(|at| at.elapsed() >= COUNTED_EACH);
        let before = mark.clone().and_then(|mark| self.mark.replace(mark));
        let is_lost = before.is_some() && before != mark;
        if self.jobs > 0 && is_lost {
            self.report(store).await?;
        } else if !is_due {
            return Ok(());
        }
        self.jobs = store.count_jobs().await?.all();
        self.run_id = store.redis_state(false).await?.run_id;
        self.counted_at = Some(Instant::now());
        Ok(())
    }

    async fn report(&self, store: &Store) -> Result<(), StoreError> {
        let run_id = store.redis_state(false).await?.run_id;
        let restarted = run_id.is_some() && self.run_id.is_some() && run_id != self.run_id;
        let emptied = EmptiedRedis { at: store.now().await?, jobs: self.jobs, restarted };
        let jobs = counted(emptied.jobs, "job was known", "jobs were known");
        let how = if restarted { "was restarted without its data" } else { "was emptied" };
        error!("redis at {} {how}: {jobs}, all keys of the namespace are gone", store.address());
        store.note_emptied(&emptied).await
    }
}
