//! One attempt of a job while it runs, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::log_buffer::LogBuffer;
use crate::engine::{Cancel, Failure, InputFiles, Inputs, Success};
use crate::proto::job::{Job, JobId, TraceParent};
use crate::proto::queue::Queue;
use crate::trace::{Tracer, new_span};

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
    pub(super) outcomes: mpsc::Sender<RunOutcome>,
    /// Where it waited, and goes back to if it is given back.
    pub(super) queue: Queue,
    /// The outputs of its prerequisites.
    pub(super) inputs: Inputs,
    pub(super) files: InputFiles,
    pub(super) timeout: Duration,
    pub(super) cancel: Cancel,
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

/// An attempt of which spans are made.
pub(super) struct TracedAttempt {
    /// The trace, and the span of the attempt.
    pub(super) own: TraceParent,
    /// The id of the span above.
    pub(super) parent: Option<String>,
    pub(super) begun: Instant,
}

impl TracedAttempt {
    /// Begins an attempt. `None` if its job can have no place in a trace.
    pub(super) fn new(tracer: &Tracer, job: &Job) -> Option<Self> {
        let (above, parent) = tracer.place_of(job)?;
        Some(Self { own: above.below(new_span()), parent, begun: Instant::now() })
    }
}

/// The end of an attempt, as its thread saw it.
pub(super) struct RunOutcome {
    pub(super) run: Arc<RunningJob>,
    pub(super) result: Result<Success, Failure>,
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
