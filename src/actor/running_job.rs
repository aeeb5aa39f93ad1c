//! One attempt of a job while it runs, and its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::log_buffer::LogBuffer;
use super::traced_attempt::TracedAttempt;
use crate::engine::{Cancel, Failure, InputFiles, Inputs, Success};
use crate::proto::job::{Job, JobId, TraceParent};
use crate::proto::queue::Queue;

/// One attempt of a job, from its claim to its end. The fetch loop and the job's thread share it.
pub(super) struct RunningJob {
    pub(super) job: Job,
    /// The time of its claim, as in [`crate::store::Attempt::claimed_at`].
    pub(super) claimed_at: u64,
    /// The actor that runs it, by its place in the process.
    pub(super) actor: usize,
    /// The shard that it is of, by its place among those that the process serves.
    pub(super) shard: usize,
    /// The boot of that shard, by its number.
    pub(super) boot: u64,
    /// Takes its outcome.
    pub(super) outcomes: mpsc::Sender<RunOutcome>,
    /// Where it waited, and goes back to if it is given back.
    pub(super) queue: Queue,
    /// The outputs of its prerequisites.
    pub(super) inputs: Inputs,
    /// The files that it is given.
    pub(super) files: InputFiles,
    /// The time that the attempt may take.
    pub(super) timeout: Duration,
    /// Stops it.
    pub(super) cancel: Cancel,
    /// Takes its log lines.
    pub(super) log: LogBuffer,
    /// Its place in a trace, which its script gets.
    pub(super) traceparent: Option<TraceParent>,
    /// When it was handed to a thread, if spans are made of it.
    pub(super) traced: Option<TracedAttempt>,
}

impl RunningJob {
    /// The job's id and the time of its claim.
    pub(super) fn attempt(&self) -> (JobId, u64) {
        (self.job.id.clone(), self.claimed_at)
    }
}

/// The end of an attempt, as its thread saw it.
pub(super) struct RunOutcome {
    /// The attempt.
    pub(super) run: Arc<RunningJob>,
    /// The result of the engine.
    pub(super) result: Result<Success, Failure>,
    /// The time that it ran.
    pub(super) took: Duration,
}

impl RunOutcome {
    /// Returns the outcome with the latest reason for its stop: a person may have stopped the job while it ended
    /// because of a shutdown.
    pub(super) fn with_latest_reason(mut self) -> Self {
        if let (Err(Failure::Stopped(reason)), Some(latest)) =
            (&mut self.result, self.run.cancel.requested())
        {
            *reason = latest;
        }
        self
    }
}
