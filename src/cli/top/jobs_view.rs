//! A list of jobs on the screen: the jobs of a queue, or in a state. Redis's jobs are searched, not the rows on the
//! screen.

use std::fmt::Write as _;

use super::panes::{ListRow, any_job};
use crate::cli::input::bad;
use crate::client::Client;
use crate::error::Error;
use crate::proto::job_filter::JobFilter;
use crate::proto::queue::Queue;
use crate::store::{FoundJobs, JobSearch, ListQuery};
use jiff::Timestamp;
use jiff::tz::TimeZone;

const JOBS_MAX: usize = 200;

/// The states that keys choose, as `hero job list --status` has them; the first is every state.
const STATES: [&str; 8] =
    ["any state", "waiting", "running", "finished", "failed", "cancelled", "replaced", "expired"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobsWanted {
    pub(super) queue: Option<Queue>,
    /// The place in [`STATES`].
    state: usize,
    /// Only jobs whose id begins with this text, or whose name, tags or error contain it.
    pub(super) text: String,
}

pub(super) struct JobsView {
    pub(super) wanted: JobsWanted,
    /// The text of the filter while it is typed.
    pub(super) typed: String,
    /// The jobs; none until they were read.
    pub(super) found: Option<FoundJobs>,
}

impl JobsWanted {
    pub(super) async fn read(&self, client: &Client) -> Result<FoundJobs, Error> {
        let mut filter = JobFilter::default();
        if self.state > 0 {
            filter = filter.and("status", STATES.get(self.state).copied().unwrap_or_default());
        }
        if let Some(queue) = &self.queue {
            filter = filter.and("queue", &queue.to_string());
            filter = filter.and("type", queue.target.script_type().as_str());
        }
        let filter = filter.and("text", &self.text).trimmed();
        let found = JobSearch::of(&filter, &TimeZone::UTC, Timestamp::now());
        let (query, search) = found.map_err(bad)?;
        let query = ListQuery { limit: JOBS_MAX, budget: Some(ListQuery::BUDGET), ..query };
        Ok(client.jobs().find(&query, &search.seeing_all(true), |_| true).await?)
    }
}

impl JobsView {
    /// Creates the list of the jobs that wait, of a queue or of all.
    pub(super) fn new(queue: Option<Queue>) -> Self {
        let wanted = JobsWanted { queue, state: 1, text: String::new() };
        Self { wanted, typed: String::new(), found: None }
    }

    /// Goes on to the next state, or back.
    pub(super) fn turn(&mut self, is_back: bool) {
        let steps = if is_back { STATES.len() - 1 } else { 1 };
        self.wanted.state = (self.wanted.state + steps) % STATES.len();
        self.found = None;
    }

    pub(super) fn search(&mut self) {
        self.wanted.text.clone_from(&self.typed);
        self.found = None;
    }

    pub(super) fn title(&self) -> String {
        let mut title = format!("Jobs: {}", STATES[self.wanted.state]);
        if let Some(queue) = &self.wanted.queue {
            let _ = write!(title, ", of {queue}");
        }
        if !self.wanted.text.trim().is_empty() {
            let _ = write!(title, ", with {}", self.wanted.text.trim());
        }
        let Some(found) = &self.found else { return title };
        let more = if found.next.is_some() { "+" } else { "" };
        let _ = write!(title, ": {}{more}", found.items.len());
        if !found.complete && found.items.len() < JOBS_MAX {
            let _ = write!(title, " of the latest {}", found.searched);
        }
        title
    }

    pub(super) fn rows(&self, now: Timestamp) -> Vec<ListRow> {
        self.found.iter().flat_map(|found| &found.items).map(|job| any_job(job, now)).collect()
    }
}
