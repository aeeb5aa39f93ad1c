//! The bridge of one circle of rhailib: turns its tasks into jobs as soon as they are pushed.
//!
//! One Lua script takes a task and creates its job, so a supervisor never holds a task, and any number
//! of supervisors may serve one circle. The outcome needs no bridge: the script that ends such a job
//! writes the details and pushes the reply in the same step.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use super::duty::DutyCounts;
use crate::proto::keys::Keys;
use crate::proto::legacy::RhailibCircle;
use crate::store::{Backoff, Blocking, Store, StoreError, TasksTaken};

/// The duration of one wait for tasks, and the longest round of the loop.
const WAIT: Duration = Duration::from_secs(2);
/// The first and the longest pause between two checks of tasks without details, which usually follow the id at once.
const CHECK_FIRST: Duration = Duration::from_millis(1);
const CHECK_LONGEST: Duration = Duration::from_millis(250);

/// The time between two looks at the circles that were found.
const FOUND_EVERY: Duration = Duration::from_secs(1);

/// Starts a bridge for each circle that the search through all keys finds for a pattern of the configuration, until
/// the task is dropped. The named ones among `circles` have theirs.
pub(super) async fn run_found(store: Store, circles: Vec<RhailibCircle>, counts: Arc<DutyCounts>) {
    let named = circles.iter().filter(|circle| !circle.circle.is_pattern());
    let mut served: BTreeSet<_> = named.map(|circle| circle.circle.clone()).collect();
    let (mut bridges, mut backoff) = (JoinSet::new(), Backoff::default());
    loop {
        let wait = match store.legacy().found_circles(&circles).await {
            Ok(found) => {
                for circle in found {
                    if served.insert(circle.circle.clone()) {
                        info!(circle = %circle.circle, "found a circle");
                        let counts = Arc::clone(&counts);
                        bridges.spawn(run(store.clone(), circle, counts));
                    }
                }
                backoff.succeeded();
                FOUND_EVERY
            }
            Err(error) => {
                debug!("looking for circles: {error}");
                backoff.failed()
            }
        };
        tokio::time::sleep(wait).await;
    }
}

/// Serves a circle until the task is dropped.
pub(super) async fn run(store: Store, circle: RhailibCircle, counts: Arc<DutyCounts>) {
    let name = &circle.circle;
    let mut blocking = store.blocking();
    let mut backoff = Backoff::default();
    loop {
        counts.rounds.fetch_add(1, Ordering::Relaxed);
        match round(&store, &mut blocking, &circle).await {
            Ok(()) => {
                backoff.succeeded();
            }
            Err(error) => {
                let wait = backoff.failed();
                if error.is_outage() {
                    counts.redis_failed("taking tasks of a circle", &error);
                } else {
                    warn!(circle = %name, "taking tasks: {error}; trying again");
                }
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Takes the tasks in the list, and then waits for more; meanwhile checks the tasks whose details are
/// missing.
async fn round(
    store: &Store,
    blocking: &mut Blocking,
    circle: &RhailibCircle,
) -> Result<(), StoreError> {
    let mut taken = take(store, circle).await?;
    if taken.ids >= Store::TASKS_MAX {
        return Ok(());
    }
    let list = Keys::tasks(&circle.circle);
    let mut checks = 0;
    // Redis checks its own timeouts too rarely to wake this loop.
    let mut peek = pin!(blocking.peek(&list, WAIT));
    loop {
        let wait = check_pause(checks);
        tokio::select! {
            peeked = &mut peek => return peeked.map(|_| ()),
            () = tokio::time::sleep(wait), if taken.late > 0 => {
                taken = take(store, circle).await?;
                checks += 1;
            }
        }
    }
}

fn check_pause(checks: u32) -> Duration {
    CHECK_FIRST.saturating_mul(1 << checks.min(16)).min(CHECK_LONGEST)
}

async fn take(store: &Store, circle: &RhailibCircle) -> Result<TasksTaken, StoreError> {
    let taken = store.legacy().take_tasks(circle).await?;
    let name = &circle.circle;
    for (task, why) in &taken.told {
        warn!(circle = %name, task = %task, "not taken as a job: {why}");
    }
    if taken.made > 0 {
        debug!(circle = %name, jobs = taken.made, "tasks became jobs");
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_for_late_details_become_less_frequent() {
        let waits: Vec<u128> = (0..11).map(|checks| check_pause(checks).as_millis()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 250, 250, 250]);
        assert_eq!(check_pause(u32::MAX), CHECK_LONGEST);
    }
}
