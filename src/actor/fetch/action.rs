//! The actions that the parts of the fetch loop return and the loop applies.

use super::background_calls::BackgroundCall;
use super::inputs::ReadInputs;
use crate::proto::job::JobId;
use crate::store::{Attempt, StoreError};

/// One thing that the loop has to do.
#[derive(Debug)]
pub(super) enum Action {
    /// Run a job that this actor claimed, with its inputs.
    Start(usize, Box<Attempt>, ReadInputs),
    /// Postpone a job of this actor that was claimed at that time: its claims cut the connection.
    SetApart(usize, JobId, u64),
    /// Handle a control message of this actor.
    Control(usize, Vec<u8>),
    DrainAll,
    /// Stop all running jobs. They go back to their queues once their processes have ended.
    StopAll,
    /// Adopt what programs pushed into lists of an actor.
    Adopt(usize, Vec<String>),
    Do(BackgroundCall),
    RedisAnswered,
    /// Note that Redis did not do this.
    RedisFailed(&'static str, StoreError),
    LeaseLost,
}
