//! The limits of a watched child, and the reasons why it ended.

use std::time::{Duration, Instant};

use crate::engine::{Cancel, Log, StopReason};
use crate::sandbox::Limit;

#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) cancel: &'a Cancel,
    pub(crate) deadline: Instant,
    /// The time to end after a request, before the child is killed.
    pub(crate) kill_grace: Duration,
    /// The largest standard output; more ends the child, unless its end is kept. Of a tool as much of standard error is kept.
    pub(crate) output_bytes_max: u64,
    /// True if the end of a larger standard output is kept, and the child goes on.
    pub(crate) keeps_stdout_end: bool,
    pub(crate) log: Option<&'a dyn Log>,
    /// True for the script of a job: it gets a channel for progress and output (`watch/channel.rs`), and its standard output,
    /// which a log may want as well, is no part of its log.
    pub(crate) is_of_job: bool,
}

impl<'a> Watch<'a> {
    /// Returns the limits of a program that is no script: bytes of each stream to keep, and to log if there is a log.
    pub(crate) fn of_tool(
        cancel: &'a Cancel,
        (deadline, kill_grace): (Instant, Duration),
        bytes_max: u64,
        log: Option<&'a dyn Log>,
    ) -> Self {
        Self {
            cancel,
            deadline,
            kill_grace,
            output_bytes_max: bytes_max,
            keeps_stdout_end: false,
            log,
            is_of_job: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, or by a signal that Hero did not send.
    Itself,
    /// Ended by Hero: the deadline has passed.
    Timeout,
    /// Ended by Hero: a stop was requested.
    Stopped(StopReason),
    /// Ended by Hero: the job exceeds a limit that Hero measures itself.
    Exceeded(Limit),
}
