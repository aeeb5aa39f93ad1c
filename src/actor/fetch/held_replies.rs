//! Replies that wait until the ends of their jobs are confirmed: a confirmation may take a second, and the next ends
//! are recorded meanwhile.

use tracing::warn;

use super::action::Action;
use super::pending::Pending;
use crate::proto::job::JobId;
use crate::store::{Store, StoreError};

/// The tries to confirm the ends of some jobs.
const TRIES: u32 = 3;

/// The jobs of a call, and the number of replies that were pushed.
pub(super) type ReplyEnd = (Vec<JobId>, Result<u64, StoreError>);

/// The ended jobs of one boot whose replies wait.
pub(super) struct HeldReplies {
    store: Store,
    /// The jobs whose confirmation has not begun.
    pub(super) waiting: Vec<JobId>,
    /// The number of jobs of the call under way.
    confirming: usize,
    pub(super) under_way: Pending<ReplyEnd>,
}

impl HeldReplies {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            waiting: Vec::new(),
            confirming: 0,
            under_way: Pending::default(),
        }
    }

    pub(super) fn add(&mut self, ids: impl Iterator<Item = JobId>) {
        self.waiting.extend(ids);
    }

    /// Returns the number of jobs that have no reply yet.
    pub(super) fn left(&self) -> usize {
        self.waiting.len() + self.confirming
    }

    /// Starts to confirm ends and to push their replies.
    pub(super) fn begin(&mut self) {
        if self.under_way.is_active() || self.waiting.is_empty() {
            return;
        }
        let (ids, store) = (std::mem::take(&mut self.waiting), self.store.clone());
        self.confirming = ids.len();
        self.under_way.start(async move {
            let pushed = pushed(&store, &ids).await;
            (ids, pushed)
        });
    }

    pub(super) fn done(&mut self, (ids, pushed): ReplyEnd) -> Action {
        self.confirming = 0;
        match pushed {
            Ok(_) => Action::RedisAnswered,
            Err(error) if error.is_outage() => {
                self.waiting.splice(0..0, ids);
                Action::RedisFailed("confirming how jobs ended", error)
            }
            Err(error) => {
                let jobs = ids.len();
                warn!(jobs, "cannot confirm how jobs ended, so they push no reply: {error}");
                Action::RedisAnswered
            }
        }
    }
}

/// Confirms ends and pushes the replies that wait for it, in some tries. Without a confirmation there is no reply: who
/// waits finds the end in the hash, and that it is not confirmed.
async fn pushed(store: &Store, ids: &[JobId]) -> Result<u64, StoreError> {
    let mut tries = 1;
    loop {
        match store.acks().confirm(ids).await {
            // The jobs that are gone have no reply to push.
            Ok(_) => return store.jobs().push_replies(ids).await,
            Err(_) if tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}
