//! Duties: check Redis, and keep up what no single job needs: statistics, machines, indexes of objects.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::duty::{Next, Round};
use crate::proto::text::counted;
use crate::store::{Outlook, RedisState, Store, StoreError, WorkKind};

/// The shortest time between two samples of one type by any supervisor.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// The longest time between two checks of what Redis keeps.
const DURABILITY_INTERVAL_MAX: Duration = Duration::from_mins(1);
/// The time between two log lines about one key.
const WRONG_TYPE_AGAIN: Duration = Duration::from_mins(10);
/// The contexts whose indexes one call of the store tends.
const CONTEXTS: usize = 100;
/// The pause after all contexts have been checked, as a multiple of the time for that: checking many
/// contexts must not keep Redis busy.
const CONTEXTS_PAUSE_FACTOR: u32 = 10;

/// Polls for the work of all other duties in one call. Most of the time there is none, and they rest.
pub(super) async fn poll(round: Round) -> Result<Next, StoreError> {
    let pause = round.sweep();
    let mut outlook = match round.store.schedule().plan().await {
        Ok(outlook) => outlook,
        Err(error) => {
            // Without an answer each duty polls by itself. While Redis is away none can.
            if !error.is_outage() {
                round.counts.outlook.send_replace(Outlook::unknown());
            }
            return Err(error);
        }
    };
    if outlook.next_due.is_some_and(|next| next <= pause) {
        outlook.work.insert(WorkKind::Scheduled);
    }
    let revision = outlook.cron_revision.as_deref();
    if !round.counts.crontab.is_of(&round.settings.crontab, revision) {
        outlook.work.insert(WorkKind::Crontab);
    }
    round.counts.outlook.send_replace(outlook);
    round.counts.rests_for(pause);
    Ok(Next::After(pause))
}

/// Checks what Redis keeps of the accepted jobs, which may change while it runs, and logs a change.
pub(super) async fn durability(round: Round) -> Result<Next, StoreError> {
    let state = round.store.redis().state(false).await?;
    // The daemon logs what Redis keeps at its start.
    if round.counts.note_redis_state(&state) {
        info!("redis at {} now keeps {}", round.store.address(), state.keeps());
        for danger in state.dangers() {
            warn!("{danger}");
        }
    }
    note_memory(&round, &state);
    Ok(Next::After(round.pause(10).min(DURABILITY_INTERVAL_MAX)))
}

/// Logs when the memory of Redis is nearly full, and when it no longer is.
fn note_memory(round: &Round, state: &RedisState) {
    let (critical, used) = (round.settings.health.check.memory_critical, state.memory_percent());
    let is_full = critical > 0 && used >= critical;
    if round.counts.memory_full.swap(is_full, Ordering::Relaxed) == is_full {
        return;
    }
    let address = round.store.address();
    if is_full {
        warn!(
            "redis at {address} uses {used} % of its maxmemory: when it is full, submissions are refused and logs of jobs \
             lack lines; raise maxmemory, or delete jobs"
        );
    } else {
        info!("redis at {address} uses {used} % of its maxmemory again");
    }
}

/// Notes the machines of live actors, so that jobs for every machine name those that are switched off too.
pub(super) async fn machines(round: Round) -> Result<Next, StoreError> {
    let live = round.store.actors().list(None).await?;
    round.store.actors().note_machines(&live, round.settings.supervisor.machines_kept).await?;
    Ok(Next::After(round.pause(30)))
}

/// Logs the keys that scripts found to have the wrong type.
pub(super) async fn wrong_types(round: Round) -> Result<Next, StoreError> {
    let found = round.store.recovery().report_wrong_types(WRONG_TYPE_AGAIN).await?;
    if !found.is_empty() {
        let keys: Vec<String> = found.iter().map(|(key, of)| format!("{key} ({of})")).collect();
        error!(
            "keys have the wrong type and are treated as absent; a foreign program or a person \
             wrote them; delete them: {}",
            keys.join(", ")
        );
    }
    Ok(round.until(WorkKind::WrongTypes, round.long_pause()))
}

/// Samples throughput and counters, and removes expired jobs from their indexes.
pub(super) async fn statistics(round: Round) -> Result<Next, StoreError> {
    let sampled = round.store.stats().sample(SAMPLE_INTERVAL).await?;
    if sampled.sorted > 0 {
        report_sorted(&round.store, sampled.sorted).await?;
    }
    round.store.stats().keep_sample().await?;
    let pause = round.long_pause().max(Duration::from_secs(1));
    // A rate is shown until the next sample. A queue is known until a sample finds it empty.
    Ok(if sampled.jobs_end || sampled.sorted > 0 {
        Next::After(pause)
    } else {
        round.until(WorkKind::Queues, pause)
    })
}

/// Reports the progress of an upgrade: lists are complete once all ended jobs are sorted by their ends.
async fn report_sorted(store: &Store, sorted: u64) -> Result<(), StoreError> {
    let left = store.jobs().count().await?.unsorted;
    let jobs = counted(sorted, "ended job", "ended jobs");
    if left == 0 {
        info!("sorted {jobs} of an older version by their ends: done, lists are complete");
    } else {
        info!("sorted {jobs} of an older version by their ends; {left} are left, which lists lack");
    }
    Ok(())
}

/// Builds the declared indexes of objects in every context, and removes those that are no longer declared.
pub(super) async fn object_indexes(round: Round) -> Result<Next, StoreError> {
    let started = Instant::now();
    let (config, mut after) = (&round.settings.osis, None);
    loop {
        let tended = round.store.tend_object_indexes(config, after.as_ref(), CONTEXTS).await?;
        for index in &tended.built {
            let (object_type, field) = (&index.object_type, &index.field);
            info!(context = %index.context, "the index on {object_type}.{field} is built");
        }
        for index in &tended.removed {
            let (object_type, field) = (&index.object_type, &index.field);
            info!(
                context = %index.context,
                "the index on {object_type}.{field} was removed: it is no longer declared"
            );
        }
        after = tended.last;
        if after.is_none() {
            break;
        }
    }
    let pause = started.elapsed().saturating_mul(CONTEXTS_PAUSE_FACTOR).max(Duration::from_secs(1));
    Ok(round.until(WorkKind::Objects, pause.max(round.long_pause())))
}
