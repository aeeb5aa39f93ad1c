//! Adopts jobs that programs pushed with plain commands, so that they are seen, counted and recovered as all
//! others: at once, as Redis reports each push, and by a sweep.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::duty::{Next, Round, SupervisorSettings};
use crate::store::{
    AdoptionRules, AfterAdoption, Store, StoreError, WorkKind, adopt_what_is_pushed,
};

/// The steps that one sweep takes on a list.
const STEPS_MAX: usize = 20;

/// Adopts entries of lists that no message reported.
pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let rules = AdoptionRules::from(&round.settings.job);
    for list in round.store.unadopted().await? {
        for _ in 0..STEPS_MAX {
            let adopted = round.store.adopt(&list, rules).await?;
            if adopted.next != AfterAdoption::More {
                break;
            }
        }
    }
    Ok(round.until(WorkKind::Queues, round.long_pause()))
}

/// Adopts pushed jobs, until the task is dropped. `hears` is notified once it hears of pushes.
pub(super) async fn hear(
    store: Store,
    settings: watch::Receiver<Arc<SupervisorSettings>>,
    hears: Arc<Notify>,
) {
    let rules = || AdoptionRules::from(&settings.borrow().job);
    adopt_what_is_pushed(&store, rules, &hears).await;
}
