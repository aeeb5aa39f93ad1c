//! The progress of a search or change of many jobs, at a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crate::cli::output;
use crate::client::Client;
use crate::error::Error;

/// The progress of a search.
#[derive(Default)]
pub(super) struct SearchProgress {
    /// The number of all jobs, once it was shown.
    jobs: Option<u64>,
}

impl SearchProgress {
    /// The time between two lines.
    pub(super) const PERIOD: Duration = Duration::from_millis(500);

    /// Shows how many jobs were searched.
    pub(super) async fn show(&mut self, client: &Client, searched: usize) -> Result<(), Error> {
        if !io::stderr().is_terminal() {
            return Ok(());
        }
        let jobs = match self.jobs {
            Some(jobs) => jobs,
            None => *self.jobs.insert(client.count_jobs().await?.all()),
        };
        output::passing_note(&format!("hero: searched {searched} of {jobs} jobs"));
        Ok(())
    }

    /// Clears the line.
    pub(super) fn clear(&self) {
        if self.jobs.is_some() {
            output::passing_note("");
        }
    }
}
