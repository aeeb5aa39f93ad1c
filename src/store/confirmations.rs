//! The questions whether writes have arrived, which callers share, and the connection that asks.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::sync::oneshot::{self, Receiver, Sender};

use super::connection::Blocking;
use super::store_error::Result;
use crate::proto::job::JobId;

/// The jobs of a question that do not exist any more.
pub(super) type Answer = Result<Vec<JobId>>;

pub(super) struct Question {
    pub(super) ids: Vec<JobId>,
    pub(super) answer: Sender<Answer>,
}

/// The questions of all clones of a store, and the connection that asks.
#[derive(Clone, Default)]
pub(super) struct Confirmations {
    next: Arc<Mutex<Vec<Question>>>,
    pub(super) asking: Arc<tokio::sync::Mutex<Option<Asking>>>,
    /// True if Redis has said that it can confirm, and no question has failed since.
    pub(super) is_able: Arc<AtomicBool>,
}

pub(super) struct Asking {
    pub(super) link: Blocking,
    pub(super) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    WaitAof,
    /// By the answer to any write: it synchronises each with the disk first.
    Answer,
    Wait(u8),
}

impl Confirmations {
    pub(super) fn ask(&self, ids: &[JobId]) -> Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        self.next.lock().push(Question { ids: ids.to_vec(), answer });
        receiver
    }

    pub(super) fn take(&self) -> Vec<Question> {
        mem::take(&mut *self.next.lock())
    }
}
