//! The options that bound a graph or batch.

use clap::Args;

use crate::proto::window::{GraphWindow, StopAfter};

/// The window of a graph or batch.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct WindowOptions {
    /// Run at most so many of its jobs at once; 0 for no bound
    #[arg(long, value_name = "NUMBER")]
    at_a_time: Option<u32>,
    /// Stop its jobs that have not started after so many failures, or a share of all jobs such as 5%; 0 for no bound
    #[arg(long, value_name = "FAILURES")]
    stop_after: Option<StopAfter>,
}

impl WindowOptions {
    /// The names of the options.
    pub(super) const IDS: [&str; 2] = ["at_a_time", "stop_after"];

    /// Returns what they set.
    pub(super) fn window(self) -> GraphWindow {
        GraphWindow { at_a_time: self.at_a_time, stop_after: self.stop_after }
    }
}
