//! Queues with older names: each is watched on a connection of its own while its actor has nothing
//! to do. A watcher only looks; what it finds is taken by a claim, in one step, like all else.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::debug;

use super::slots::Slots;
use crate::store::{Backoff, Blocking, Store};

/// How long one look waits for something to come.
const LOOK: Duration = Duration::from_secs(2);

/// Whether an actor waits for work, and for the how manieth time: a watcher that looked away for a
/// moment still sees that a claim has come between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Wanted {
    now: bool,
    times: u64,
}

/// The watchers of all actors of this process. They end with it.
pub(super) struct Legacy {
    /// For each actor that has such queues: its place, and whether it wants to know.
    wanted: Vec<(usize, watch::Sender<Wanted>)>,
    found: mpsc::Receiver<usize>,
    _watchers: JoinSet<()>,
}

impl Legacy {
    /// Starts a watcher for every queue with an older name.
    pub(super) fn watch(store: &Store, slots: &[Slots]) -> Self {
        let (sender, found) = mpsc::channel(16);
        let (mut wanted, mut watchers) = (Vec::new(), JoinSet::new());
        for (actor, slots) in slots.iter().enumerate() {
            if slots.legacy.is_empty() {
                continue;
            }
            let (wants, _) = watch::channel(Wanted::default());
            for list in &slots.legacy {
                let (blocking, list) = (store.blocking(), list.clone());
                watchers.spawn(look(blocking, list, actor, wants.subscribe(), sender.clone()));
            }
            wanted.push((actor, wants));
        }
        Self { wanted, found, _watchers: watchers }
    }

    /// Lets those actors' queues be watched that wait for work.
    pub(super) fn look(&self, slots: &[Slots]) {
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

    /// The next actor that has something in a queue with an older name; never, without any.
    pub(super) async fn found(&mut self) -> usize {
        match self.found.recv().await {
            Some(actor) => actor,
            None => std::future::pending().await,
        }
    }
}

/// Watches one queue for ever. After each find it holds still until the actor, having claimed what
/// was there, wants to know again.
async fn look(
    mut blocking: Blocking,
    list: String,
    actor: usize,
    mut wanted: watch::Receiver<Wanted>,
    found: mpsc::Sender<usize>,
) {
    let mut backoff = Backoff::default();
    let mut done = 0;
    loop {
        let times = match wanted.wait_for(|wanted| wanted.now && wanted.times > done).await {
            Ok(wanted) => wanted.times,
            Err(_) => return,
        };
        match blocking.peek(&list, LOOK).await {
            Ok(is_there) => {
                backoff.succeeded();
                if is_there {
                    done = times;
                    if found.send(actor).await.is_err() {
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
