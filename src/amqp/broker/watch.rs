//! Looks at the topology from time to time: a queue or a binding that was removed while brokers run
//! would lose messages in silence. Counts the dead letters too.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::{debug, warn};

use super::shared::Shared;
use crate::amqp::compare::{FoundQueue, unbound};
use crate::amqp::link::LinkError;
use crate::amqp::topology::{EXCHANGES, Pool, Work};

/// Looks until the process is to end.
pub(super) async fn run(shared: Arc<Shared>, pools: Vec<Arc<Pool>>) {
    let mut ticks = tokio::time::interval(shared.settings.amqp.topology_interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The start has declared everything.
    ticks.tick().await;
    count_letters(&shared, &pools).await;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.left() => return,
        }
        match look(&shared, &pools).await {
            Ok(()) => {}
            Err(error) if error.is_transient() => debug!("looking at the topology: {error}"),
            Err(error) => warn!("looking at the topology: {error}"),
        }
        count_letters(&shared, &pools).await;
    }
}

/// Counts the dead letters of the queues of this process. A queue that cannot be asked keeps its number.
async fn count_letters(shared: &Shared, pools: &[Arc<Pool>]) {
    let mut letters = BTreeMap::new();
    for pool in pools {
        let Work { queue, dead, .. } = &pool.work;
        if letters.contains_key(&queue.name) {
            continue;
        }
        match shared.link.counts(&dead.name).await {
            Ok(counts) => {
                let number = counts.map_or(0, |counts| counts.messages);
                letters.insert(queue.name.clone(), u64::from(number));
            }
            Err(error) => debug!("counting the dead letters of {}: {error}", queue.name),
        }
    }
    shared.letters.lock().extend(letters);
}

/// Declares what a look found to be gone, and nothing else: what goes after the look was read would come back without a
/// warning.
async fn look(shared: &Shared, pools: &[Arc<Pool>]) -> Result<(), LinkError> {
    // Before the exchanges: the bindings of one that goes in between are not reported in its place.
    let found = bindings(shared).await;
    let mut lacks_exchange = false;
    for (name, _) in EXCHANGES {
        if !shared.link.has_exchange(name).await? {
            warn!("the exchange {name} is gone: declaring it again");
            lacks_exchange = true;
        }
    }
    for pool in pools {
        let work: &Work = &pool.work;
        // The protocol does not list bindings; to bind leaves an existing one as it is.
        let mut lacks = lacks_exchange || found.is_none();
        for queue in work.queues() {
            let name = &queue.name;
            if shared.link.counts(name).await?.is_none() {
                warn!("the queue {name} is gone: declaring it again");
                lacks = true;
            } else if let Some(found) = found.as_ref().and_then(|found| found.get(name))
                && let Some((exchange, key)) = unbound(queue, found)
            {
                warn!("the queue {name} is not bound to {exchange} by {key} any more: binding it");
                lacks = true;
            }
        }
        if lacks {
            shared.declare(work).await?;
        }
    }
    Ok(())
}

/// Returns the queues with their bindings; `None` without a management API that lists them.
async fn bindings(shared: &Shared) -> Option<BTreeMap<String, FoundQueue>> {
    let management = shared.link.management(&shared.settings.amqp)?;
    match management.queues().await {
        Ok(found) => Some(found),
        Err(error) => {
            warn!("cannot list bindings: {error}; binding all queues, without a warning for each");
            None
        }
    }
}
