//! Duties: recover the jobs of dead actors and of foreign programs, and remove what they leave in the indexes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::clock_watch::uptime;
use super::duty::{DutyCounts, Next, Round, SupervisorSettings};
use crate::store::{Backoff, Blocking, Recovered, Store, StoreError, WorkKind};

/// The pause after an outage, in which leases expire. Live actors renew theirs within a second after it.
pub(super) const AFTER_OUTAGE: Duration = Duration::from_secs(3);
/// A look at the leases is no later than this. A larger distance is a step of Redis's clock.
const LATE: Duration = Duration::from_secs(2);
/// The pause between two walks through all jobs, as a multiple of the sweep interval.
const WALK_FACTOR: u32 = 10;
/// The duration of one wait for a push. Redis serves the client that has waited longest, so an entry is seen here
/// before an old worker that started to wait later pops it.
const PUSH_WAIT: Duration = Duration::from_secs(30);

/// Puts the jobs of dead actors back to the front of their queues.
pub(super) async fn dead_boots(round: Round) -> Result<Next, StoreError> {
    let limit = round.settings.job.crash_limit;
    let late = round.long_pause() + LATE;
    let recovered = round.store.recovery().boots(None, late, limit, round.kept()).await?;
    let was_set_back = recovered.was_set_back;
    round.counts.note(round.name, recovered);
    if was_set_back {
        round.store.recovery().shorten_waits().await?;
        let of_shard = round.counts.of_shard();
        info!("the clock of redis{of_shard} was set back: retries and delays are counted from now");
    }
    // A lease that is renewed ends later; a boot that appears meanwhile begins with a whole one.
    let called = uptime();
    let (next, now) = round.store.schedule().next_lease_end().await?;
    if let Some(now) = now {
        round.counts.clock.note(called, now, &round.counts.of_shard());
    }
    let next = next.unwrap_or(Duration::MAX);
    Ok(Next::After(next.clamp(round.sweep(), round.long_pause())))
}

/// Notices the end of jobs that foreign actors run, and recovers those that never end.
pub(super) async fn foreign_actors(round: Round) -> Result<Next, StoreError> {
    let (job, sweep) = (&round.settings.job, round.sweep());
    let recovered =
        round.store.recovery().foreign(job.timeout, sweep, job.crash_limit, round.kept()).await?;
    round.counts.note(round.name, recovered);
    Ok(round.until(WorkKind::Foreign, sweep))
}

/// Puts jobs that foreign actors popped and never started back to the front of their queues.
pub(super) async fn foreign_pops(round: Round) -> Result<Next, StoreError> {
    let recovered = round.store.recovery().pops(round.kept()).await?;
    round.counts.note(round.name, recovered);
    Ok(round.until(WorkKind::Queues, round.sweep()))
}

/// Removes index entries of jobs that no longer exist.
pub(super) async fn orphaned_entries(round: Round) -> Result<Next, StoreError> {
    let recovered = round.store.recovery().orphans().await?;
    round.counts.note(round.name, recovered);
    Ok(round.until(WorkKind::Orphans, round.long_pause()))
}

/// Finds jobs of foreign programs that stand in no index, since an actor that waited popped their ids before Hero
/// knew of them: noted ones, and some of all jobs.
pub(super) async fn unindexed_jobs(round: Round) -> Result<Next, StoreError> {
    let foreign = round.settings.supervisor.foreign;
    let found = round
        .store
        .recovery()
        .find_unindexed(foreign, round.pause(WALK_FACTOR), round.kept())
        .await?;
    round.counts.note(round.name, found.recovered);
    if let Some((number, one)) = found.untyped {
        warn!(
            "{number} jobs of other programs are dispatched or started, stand in no queue and name no script type, \
             such as {one}: the programs that popped them may have died, and nobody can tell their queue; write `script_type`"
        );
    }
    Ok(round.until_due(WorkKind::Unindexed, foreign.then_some(found.next)))
}

/// Notices what old workers do with jobs that are in their queues as well.
pub(super) async fn legacy_queues(round: Round) -> Result<Next, StoreError> {
    let found = round.store.legacy().recover(round.kept()).await?;
    let foreign = found.started + found.ended;
    let put_back = found.put_back;
    round.counts.note(round.name, Recovered { put_back, foreign, ..Recovered::default() });
    Ok(Next::After(round.sweep()).unless_more(found.more))
}

/// Serves the stop requests of older clients in the stop queues of old workers, for Hero's jobs.
pub(super) async fn legacy_stops(round: Round) -> Result<Next, StoreError> {
    let done = round.store.legacy().serve_stops(round.kept()).await?;
    if done > 0 {
        info!(requests = done, "{}", round.name);
    }
    Ok(Next::After(round.sweep()))
}

/// Notices the pushes of older clients into a legacy queue, even if an old worker pops them at once, until the task is
/// dropped: the next phase of a migration starts when both have become idle.
pub(super) async fn watch_legacy_pushes(
    store: Store,
    settings: watch::Receiver<Arc<SupervisorSettings>>,
    list: String,
    counts: Arc<DutyCounts>,
) {
    let mut blocking = store.blocking();
    let mut backoff = Backoff::default();
    loop {
        counts.rounds.fetch_add(1, Ordering::Relaxed);
        match note_push(&store, &settings, &mut blocking, &list).await {
            Ok(()) => {
                backoff.succeeded();
            }
            Err(error) => {
                debug!(key = %list, "watching a legacy queue: {error}");
                tokio::time::sleep(backoff.failed()).await;
            }
        }
    }
}

/// Waits for an entry, and checks after a pause whether it was popped.
async fn note_push(
    store: &Store,
    settings: &watch::Receiver<Arc<SupervisorSettings>>,
    blocking: &mut Blocking,
    list: &str,
) -> Result<(), StoreError> {
    let Some(entry) = blocking.peek(list, PUSH_WAIT).await? else {
        return Ok(());
    };
    let pushed = store.legacy().note_push(list, &entry).await?;
    let pause = settings.borrow().supervisor.sweep_interval;
    tokio::time::sleep(pause).await;
    if let Some(id) = pushed {
        store.legacy().note_pop(list, &id).await?;
    }
    Ok(())
}
