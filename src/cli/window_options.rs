//! The options that bound a graph or batch.

use clap::{Arg, Args};
use serde_json::{Value, json};

use super::help::MANY;
use crate::proto::window::{GraphWindow, PauseAfter, StopAfter};

/// The window of a graph or batch.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct WindowOptions {
    /// Run at most so many of its jobs at once; 0 for no bound
    #[arg(long, value_name = "NUMBER")]
    at_a_time: Option<u32>,
    /// Stop its jobs that have not started after so many failures, or a share of all jobs such as 5%; '2 running' stops those
    /// that run too; 0 for no bound
    #[arg(long, value_name = "FAILURES")]
    stop_after: Option<StopAfter>,
    /// Start so many of its jobs, and the others once these have ended well and a time has passed, such as '1 10m', or,
    /// for '1 tell', once `hero graph tell ID go` says so; 0 for no pause
    #[arg(long, value_name = "JOBS PAUSE")]
    pause_after: Option<PauseAfter>,
}

impl WindowOptions {
    pub(super) const IDS: [&str; 3] = ["at_a_time", "stop_after", "pause_after"];

    /// Lets an option of a window require the group of those that submit many jobs.
    pub(super) fn bound_to(group: &'static str, option: Arg) -> Arg {
        let is_of_window = Self::IDS.contains(&option.get_id().as_str());
        if is_of_window { option.requires(group).help_heading(MANY) } else { option }
    }

    pub(super) fn window(self) -> GraphWindow {
        let Self { at_a_time, stop_after, pause_after } = self;
        GraphWindow { at_a_time, stop_after, pause_after }
    }

    /// Adds the bounds that parameters of a method do not have yet.
    pub(super) fn add_to(params: &mut Value, window: GraphWindow) {
        let bounds = json!(window);
        for (name, bound) in bounds.as_object().into_iter().flatten() {
            if params[name].is_null() {
                params[name] = bound.clone();
            }
        }
    }
}
