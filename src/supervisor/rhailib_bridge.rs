//! The bridge of one circle of rhailib: its tasks become jobs as soon as they are pushed.
//!
//! A task is taken and its job made in one script, so there is no moment in which a supervisor
//! holds it, and any number of them may serve one circle. The outcome needs no bridge: the script
//! that ends such a job writes the details and pushes the reply in the same step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{debug, info, warn};

use super::{Supervisor, Tally};
use crate::proto::legacy::RhailibCircle;
use crate::store::{Backoff, Blocking, Store, StoreError, TasksTaken};

/// How long one wait for tasks lasts: the loop turns at least this often.
const WAIT: Duration = Duration::from_secs(2);
/// How soon a task is looked at again whose details are not there yet, at first and at last.
const LATE_FIRST: Duration = Duration::from_millis(1);
const LATE_LAST: Duration = Duration::from_millis(250);

/// Serves a circle for ever.
pub(super) async fn run(own: Supervisor, circle: RhailibCircle, tally: Arc<Tally>) {
    let name = &circle.circle;
    let mut blocking = own.store.blocking();
    let mut backoff = Backoff::default();
    let mut late_wait = LATE_FIRST;
    loop {
        tally.rounds.fetch_add(1, Ordering::Relaxed);
        match round(&own.store, &mut blocking, &circle, &mut late_wait).await {
            Ok(taken) => {
                if backoff.succeeded() {
                    info!(circle = %name, "taking tasks: redis is back");
                }
                note(&circle, &taken);
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

/// Takes what is there, and then waits for more.
async fn round(
    store: &Store,
    blocking: &mut Blocking,
    circle: &RhailibCircle,
    late_wait: &mut Duration,
) -> Result<TasksTaken, StoreError> {
    let taken = store.take_tasks(circle).await?;
    if taken.ids >= Store::TASKS_MAX {
        return Ok(taken);
    }
    let wait = if taken.late == 0 {
        *late_wait = LATE_FIRST;
        WAIT
    } else {
        // Pushed before they were written: as a rule the details follow at once.
        let wait = if taken.ids > 0 { LATE_FIRST } else { *late_wait };
        *late_wait = (wait * 2).min(LATE_LAST);
        wait
    };
    note(circle, &taken);
    blocking.peek(&Store::tasks_list(circle), wait).await?;
    Ok(TasksTaken::default())
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
