//! Small things the fetch loop does for others, one after the other, each until it is done.

use std::collections::VecDeque;

use tracing::warn;

use crate::actor::life::Life;
use crate::proto::job::JobId;
use crate::proto::target::Queue;
use crate::store::{StopOutcome, StoreError, Waker, Woken};

/// Most errands that may wait: more come only from a flood of control messages, which then stay
/// in their list.
pub(super) const ERRANDS_MAX: usize = 1000;

/// Something to do with Redis.
#[derive(Debug, Clone)]
pub(super) enum Errand {
    /// A stop for a job that does not run here: see that it reaches whoever runs it.
    PassOnStop(JobId),
    /// Answer a ping into this list.
    Pong(String),
    /// Put back what a pop brought too late.
    PutBack(Woken),
    /// Give jobs back to their queues; where the queue is not known, to the one their hash names.
    GiveBack(Vec<(JobId, Option<Queue>)>),
    /// Wake the wait under way.
    Wake(Waker),
}

/// What came of one.
#[derive(Debug)]
pub(super) enum Done {
    /// Nothing more to do.
    Quietly,
    /// The job is this boot's own: claimed, but its hash is still on its way.
    StopIsOurs(JobId),
    /// Jobs were given back.
    GivenBack,
}

impl Errand {
    /// Does it.
    ///
    /// # Errors
    /// [`StoreError`]; every errand may be tried again.
    pub(super) async fn run(&self, life: &Life) -> Result<Done, StoreError> {
        let store = &life.store;
        match self {
            Self::PassOnStop(id) => {
                let asked = store.stop(id, life.settings().job.kept(), Some(&life.boot)).await?;
                if asked == StopOutcome::Own {
                    return Ok(Done::StopIsOurs(id.clone()));
                }
                tracing::info!(job_id = %id, outcome = ?asked, "passed on a stop");
            }
            Self::Pong(reply_to) => {
                if !store.pong(reply_to, "pong").await? {
                    warn!(reply_to = %reply_to.escape_debug(), "a ping named no reply list of ours");
                }
            }
            Self::PutBack(woken) => store.put_back(woken).await?,
            Self::GiveBack(jobs) => {
                let given_back = store.requeue(&life.boot, jobs).await?;
                tracing::info!(jobs = given_back, "gave jobs back to their queues");
                return Ok(Done::GivenBack);
            }
            Self::Wake(waker) => store.wake(waker).await?,
        }
        Ok(Done::Quietly)
    }
}

/// The errands still to do, in order.
pub(super) type Errands = VecDeque<Errand>;
