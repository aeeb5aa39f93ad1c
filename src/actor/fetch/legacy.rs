//! Watches legacy queues, each on a connection of its own, while their actors wait for work. A
//! watcher changes nothing; found entries are adopted.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::debug;

use super::slots::Slots;
use crate::store::{Backoff, Blocking, Store};

/// The length of one wait for a job.
const WAIT: Duration = Duration::from_secs(2);

/// The wait of an actor for work. The number of waits shows a watcher that was busy that a claim
/// came between two of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wanted {
    now: bool,
    times: u64,
}

/// The watchers of the legacy queues of this process. They end with it.
pub(super) struct LegacyWatch {
    /// The actors with such queues, by place, and whether they wait for work.
    wanted: Vec<(usize, watch::Sender<Wanted>)>,
    found: mpsc::Receiver<(usize, String)>,
    _watchers: JoinSet<()>,
}

impl LegacyWatch {
    /// Starts a watcher for each legacy queue.
    pub(super) fn start(store: &Store, slots: &[Slots]) -> Self {
        let (sender, found) = mpsc::channel(16);
        let (mut wanted, mut watchers) = (Vec::new(), JoinSet::new());
        for (actor, slots) in slots.iter().enumerate() {
            if slots.legacy.is_empty() {
                continue;
            }
            let (wants, _) = watch::channel(Wanted::default());
            for list in &slots.legacy {
                let (blocking, list) = (store.blocking(), list.clone());
                watchers.spawn(watch_list(
                    blocking,
                    list,
                    actor,
                    wants.subscribe(),
                    sender.clone(),
                ));
            }
            wanted.push((actor, wants));
        }
        Self { wanted, found, _watchers: watchers }
    }

    /// Watches the queues of the actors that wait for work.
    pub(super) fn update(&self, slots: &[Slots]) {
        for (actor, wants) in &self.wanted {
            let now = slots[*actor].wants_wait();
            wants.send_if_modified(|wanted| {
                let changes = wanted.now != now;
                wanted.now = now;
                wanted.times += u64::from(changes && now);
                changes
            });
        }
    }

    /// Waits for an entry in a legacy queue. Returns the actor, and the queue.
    pub(super) async fn next(&mut self) -> (usize, String) {
        match self.found.recv().await {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }
}

/// Watches one queue. After a find it pauses until the actor has claimed and waits again, at most one turn of its wait.
async fn watch_list(
    mut blocking: Blocking,
    list: String,
    actor: usize,
    mut wanted: watch::Receiver<Wanted>,
    found: mpsc::Sender<(usize, String)>,
) {
    let mut backoff = Backoff::default();
    let mut done = 0;
    loop {
        let times = match wanted.wait_for(|wanted| wanted.now && wanted.times > done).await {
            Ok(wanted) => wanted.times,
            Err(_) => return,
        };
        match blocking.peek(&list, WAIT).await {
            Ok(entry) => {
                backoff.succeeded();
                if entry.is_some() {
                    done = times;
                    if found.send((actor, list.clone())).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                debug!(key = %list, "watching a legacy queue: {error}");
                tokio::time::sleep(backoff.failed()).await;
            }
        }
    }
}
