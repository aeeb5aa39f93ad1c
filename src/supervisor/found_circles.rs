//! Serves the circles of rhailib that a pattern of the configuration stands for, from the time when
//! the search through all keys has found them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::{debug, info};

use super::duty::DutyCounts;
use super::rhailib_bridge;
use crate::proto::legacy::RhailibCircle;
use crate::store::{Backoff, Store};

/// The time between two looks at the found circles.
const EVERY: Duration = Duration::from_secs(1);

/// Starts a bridge for each circle that is found, until the task is dropped. The named ones among
/// `circles` have theirs.
pub(super) async fn run(store: Store, circles: Vec<RhailibCircle>, counts: Arc<DutyCounts>) {
    let named = circles.iter().filter(|circle| !circle.circle.is_pattern());
    let mut served: BTreeSet<_> = named.map(|circle| circle.circle.clone()).collect();
    let (mut bridges, mut backoff) = (JoinSet::new(), Backoff::default());
    loop {
        let wait = match store.found_circles(&circles).await {
            Ok(found) => {
                for circle in found {
                    if served.insert(circle.circle.clone()) {
                        info!(circle = %circle.circle, "found a circle");
                        let counts = Arc::clone(&counts);
                        bridges.spawn(rhailib_bridge::run(store.clone(), circle, counts));
                    }
                }
                backoff.succeeded();
                EVERY
            }
            Err(error) => {
                debug!("looking for circles: {error}");
                backoff.failed()
            }
        };
        tokio::time::sleep(wait).await;
    }
}
