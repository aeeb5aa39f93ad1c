//! The bridge of one circle of rhailib: its tasks become jobs as soon as they are pushed.
//!
//! A task is taken and its job made in one script, so there is no moment in which a supervisor
//! holds it, and any number of them may serve one circle. The outcome needs no bridge: the script
//! that ends such a job writes the details and pushes the reply in the same step.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::{Supervisor, Tally};
use crate::proto::legacy::RhailibCircle;
use crate::store::{Backoff, Blocking, Store, StoreError, TasksTaken};

/// How long one wait for tasks lasts: the loop turns at least this often.
const WAIT: Duration = Duration::from_secs(2);
/// For how long tasks whose details are not there yet are looked at again at once, each look as long
/// as a round trip: as a rule the details follow their id in the same instant, and timers are too
/// coarse for that. If they did not come, new ones get so much attention only after a rest: clients
/// that never write details take a tenth of this loop at the most.
const LATE_AT_ONCE: Duration = Duration::from_millis(2);
const LATE_REST: Duration = Duration::from_millis(20);
/// How soon they are looked at again after that, at first and at last.
const LATE_FIRST: Duration = Duration::from_millis(1);
const LATE_LAST: Duration = Duration::from_millis(250);

/// Serves a circle for ever.
pub(super) async fn run(own: Supervisor, circle: RhailibCircle, tally: Arc<Tally>) {
    let name = &circle.circle;
    let mut blocking = own.store.blocking();
    let mut backoff = Backoff::default();
    let mut late = Late::default();
    loop {
        tally.rounds.fetch_add(1, Ordering::Relaxed);
        match round(&own.store, &mut blocking, &circle, &mut late).await {
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

/// Tasks whose details were missing at the last look.
#[derive(Default)]
struct Late {
    number: u64,
    /// When they were last looked for at once and in vain.
    in_vain_at: Option<Instant>,
}

/// Takes what is there, and then waits for more; meanwhile looks after tasks that were pushed
/// before they were written.
async fn round(
    store: &Store,
    blocking: &mut Blocking,
    circle: &RhailibCircle,
    late: &mut Late,
) -> Result<(), StoreError> {
    let taken = take(store, circle).await?;
    if taken.ids >= Store::TASKS_MAX {
        late.number = taken.late;
        return Ok(());
    }
    if taken.ids > 0 && taken.late > late.number {
        look_at_once(store, circle, late, taken.late).await?;
    } else {
        late.number = taken.late;
    }
    let list = Store::tasks_list(circle);
    let mut looks = 0;
    // Redis looks at its own timeouts too seldom to be what wakes this.
    let mut peek = pin!(blocking.peek(&list, WAIT));
    loop {
        let wait = late_wait(looks);
        tokio::select! {
            there = &mut peek => return there.map(|_| ()),
            () = tokio::time::sleep(wait), if late.number > 0 => {
                late.number = take(store, circle).await?.late;
                looks += 1;
            }
        }
    }
}

/// Looks after tasks that have just come without details, until there are no more late ones than
/// before them.
async fn look_at_once(
    store: &Store,
    circle: &RhailibCircle,
    late: &mut Late,
    mut number: u64,
) -> Result<(), StoreError> {
    let began = Instant::now();
    if !late.rests(began) {
        while number > late.number && began.elapsed() < LATE_AT_ONCE {
            number = take(store, circle).await?.late;
        }
        late.in_vain_at = (number > late.number).then(Instant::now);
    }
    late.number = number;
    Ok(())
}

impl Late {
    /// Whether it is too soon to look for some at once again.
    fn rests(&self, now: Instant) -> bool {
        self.in_vain_at.is_some_and(|at| now.duration_since(at) < LATE_REST)
    }
}

/// How long after so many looks the next one comes.
fn late_wait(looks: u32) -> Duration {
    LATE_FIRST.saturating_mul(1 << looks.min(16)).min(LATE_LAST)
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
    fn details_that_were_looked_for_in_vain_give_a_rest() {
        let now = Instant::now();
        assert!(!Late::default().rests(now));
        let late = Late { number: 1, in_vain_at: Some(now) };
        assert!(late.rests(now + LATE_REST / 2) && !late.rests(now + LATE_REST));
    }

    #[test]
    fn late_details_are_looked_for_at_once_and_then_ever_more_seldom() {
        let waits: Vec<u128> = (0..11).map(|looks| late_wait(looks).as_millis()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 250, 250, 250]);
        assert_eq!(late_wait(u32::MAX), LATE_LAST);
    }
}
