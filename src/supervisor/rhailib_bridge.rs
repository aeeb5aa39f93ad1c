//! The bridge of one circle of rhailib: its tasks become jobs as soon as they are pushed.
//!
//! A task is taken and its job made in one script, so there is no moment in which a supervisor
//! holds it, and any number of them may serve one circle. The outcome needs no bridge: the script
//! that ends such a job writes the details and pushes the reply in the same step.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{debug, info, warn};

use super::{Supervisor, Tally};
use crate::proto::legacy::RhailibCircle;
use crate::store::{Backoff, Blocking, Store, StoreError, TasksTaken};

/// How long one wait for tasks lasts: the loop turns at least this often.
const WAIT: Duration = Duration::from_secs(2);
/// How often a task whose details are not there yet is looked at again at once, and how soon after
/// that, at first and at last. As a rule the details follow their id in the same instant.
const LATE_AT_ONCE: u32 = 3;
const LATE_FIRST: Duration = Duration::from_millis(1);
const LATE_LAST: Duration = Duration::from_millis(250);

/// Serves a circle for ever.
pub(super) async fn run(own: Supervisor, circle: RhailibCircle, tally: Arc<Tally>) {
    let name = &circle.circle;
    let mut blocking = own.store.blocking();
    let mut backoff = Backoff::default();
    loop {
        tally.rounds.fetch_add(1, Ordering::Relaxed);
        match round(&own.store, &mut blocking, &circle).await {
            Ok(()) => {
                if backoff.succeeded() {
                    info!(circle = %name, "taking tasks: redis is back");
                }
            }
            Err(error) => {
                let wait = backoff.failed();
                if error.is_transient() {
                    debug!(circle = %name, "taking tasks: {error}");
                } else {
                    warn!(circle = %name, "taking tasks: {error}; trying again");
                }
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Takes what is there, and then waits for more; meanwhile looks after tasks that were pushed
/// before they were written.
async fn round(
    store: &Store,
    blocking: &mut Blocking,
    circle: &RhailibCircle,
) -> Result<(), StoreError> {
    let taken = take(store, circle).await?;
    if taken.ids >= Store::TASKS_MAX {
        return Ok(());
    }
    let (mut late, mut looks) = (taken.late, 0);
    // Timers are too coarse for this: each look takes as long as a round trip.
    while taken.ids > 0 && late > 0 && looks < LATE_AT_ONCE {
        late = take(store, circle).await?.late;
        looks += 1;
    }
    let list = Store::tasks_list(circle);
    // Redis looks at its own timeouts too seldom to be what wakes this.
    let mut peek = pin!(blocking.peek(&list, WAIT));
    loop {
        let wait = late_wait(looks);
        tokio::select! {
            there = &mut peek => return there.map(|_| ()),
            () = tokio::time::sleep(wait), if late > 0 => {
                late = take(store, circle).await?.late;
                looks += 1;
            }
        }
    }
}

/// How long after so many looks the next one comes.
fn late_wait(looks: u32) -> Duration {
    let more = looks.saturating_sub(LATE_AT_ONCE).min(16);
    LATE_FIRST.saturating_mul(1 << more).min(LATE_LAST)
}

async fn take(store: &Store, circle: &RhailibCircle) -> Result<TasksTaken, StoreError> {
    let taken = store.take_tasks(circle).await?;
    note(circle, &taken);
    Ok(taken)
}

fn note(circle: &RhailibCircle, taken: &TasksTaken) {
    let name = &circle.circle;
    for (task, why) in &taken.told {
        warn!(circle = %name, task = %task.escape_debug(), "not taken as a job: {why}");
    }
    if taken.made > 0 {
        debug!(circle = %name, jobs = taken.made, "tasks became jobs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_details_are_looked_for_at_once_and_then_ever_more_seldom() {
        let waits: Vec<u128> = (3..14).map(|looks| late_wait(looks).as_millis()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 250, 250, 250]);
        assert_eq!(late_wait(u32::MAX), LATE_LAST);
    }
}
