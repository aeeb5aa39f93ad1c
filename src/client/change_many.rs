//! Changes of one job or of many: the same for the command line, the API and the page.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{ClientError, JobClient, Result};
use crate::proto::job::{JobEnd, JobId, JobStatus};
use crate::proto::text::counted;
use crate::store::{FoundJobs, JobEdit, JobSearch, JobSummary, ListQuery};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobChange {
    Retry {
        /// Also its dependents that failed because it did.
        with_dependents: bool,
        /// New values of settings, by the names of the hash.
        changes: Map<String, Value>,
    },
    Stop,
    /// Stops a job, and the jobs below it that have not ended.
    StopTree,
    Delete,
    Edit(JobValues),
}

/// New values of a job that has not started. Absent values stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobValues {
    /// Its place: priority, group, earliest time.
    pub place: JobEdit,
    /// Further settings, by the names of the hash; null takes one away.
    pub changes: Map<String, Value>,
}

impl From<JobEdit> for JobValues {
    fn from(place: JobEdit) -> Self {
        Self { place, changes: Map::new() }
    }
}

/// The change of a running job that is to stop.
pub(super) const TOLD: &str = "told to stop";

/// A job, and its change.
pub type ChangedJob = (JobId, Result<String>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManyChanged {
    pub done: BTreeSet<JobId>,
    /// The number of these that still run: their actors were told to stop them.
    pub told: usize,
    /// The number of jobs that stay as they are.
    pub left: u64,
    /// The first of these, with the reasons.
    pub problems: Vec<UnchangedJob>,
}

/// A job that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnchangedJob {
    /// The id of the job, as it was given.
    pub id: String,
    /// The reason.
    pub problem: String,
}

impl JobChange {
    /// Its word, the word once it is made, and its name in the record of changes.
    fn words(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Retry { .. } => ("retry", "retried", "job.retry"),
            Self::Stop | Self::StopTree => ("stop", "stopped", "job.stop"),
            Self::Delete => ("delete", "deleted", "job.delete"),
            Self::Edit(_) => ("edit", "edited", "job.edit"),
        }
    }

    pub fn word(&self) -> &'static str {
        self.words().0
    }

    pub fn done(&self) -> &'static str {
        self.words().1
    }

    /// The new values of settings that it gives jobs.
    pub fn changes(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        match self {
            Self::Retry { changes, .. } => changes,
            Self::Edit(values) => &values.changes,
            Self::Stop | Self::StopTree | Self::Delete => &NONE,
        }
    }

    /// Returns true if it destroys something, so that a person or program has to confirm it for many jobs.
    pub fn destroys(&self) -> bool {
        matches!(self, Self::Stop | Self::StopTree | Self::Delete)
    }

    /// Returns true if it can do something to a job in this state.
    pub fn fits(&self, status: JobStatus) -> bool {
        match self {
            Self::Stop | Self::StopTree => !status.is_terminal(),
            Self::Retry { .. } => status.is_terminal(),
            Self::Delete => status != JobStatus::Started,
            Self::Edit(_) => status.is_waiting(),
        }
    }

    /// Returns the query for the jobs that it can change. Nobody wants all that finished to run again, or jobs that were
    /// stopped or replaced, unless they ask for them.
    fn narrow(&self, query: &ListQuery, search: &JobSearch) -> ListQuery {
        let mut query = query.clone();
        let is_retry = matches!(self, Self::Retry { .. });
        if query.statuses.is_empty() {
            let wanted = |status: &JobStatus| {
                if is_retry { *status == JobStatus::Error } else { self.fits(*status) }
            };
            query.statuses = JobStatus::ALL.into_iter().filter(wanted).collect();
        }
        let names_end = !query.ends.is_empty() || search.names_end();
        if is_retry && !names_end && !query.dead {
            query.ends = JobEnd::FAILURES.to_vec();
        }
        query
    }
}

impl ManyChanged {
    const PROBLEMS_MAX: usize = 1000;

    /// Counts a job that stays as it is.
    pub fn leave(&mut self, id: &JobId, problem: String) {
        self.left += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(UnchangedJob { id: id.to_string(), problem });
        }
    }

    fn add(&mut self, step: Self) {
        self.done.extend(step.done);
        self.told += step.told;
        self.left += step.left;
        let room = Self::PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(step.problems.into_iter().take(room));
    }

    /// Returns why the first of the jobs that stay as they are does.
    pub fn reason(&self) -> Option<&str> {
        self.problems.first().map(|first| first.problem.as_str())
    }
}

impl JobClient<'_> {
    /// Changes a job. Returns its change, and the changes of its dependents if they change too.
    ///
    /// # Errors
    /// As [`Client::stop_job`](super::Client::stop_job), [`JobClient::retry`], [`Client::delete_job`](super::Client::delete_job) and [`JobClient::edit`].
    pub async fn change(self, id: &JobId, change: &JobChange) -> Result<Vec<ChangedJob>> {
        let told = self.change_unrecorded(id, change).await?;
        let further = match (change, told.len().saturating_sub(1) as u64) {
            (JobChange::Retry { with_dependents: true, .. }, further) => {
                format!(" with {}", counted(further, "dependent", "dependents"))
            }
            (_, 0) => String::new(),
            (_, further) => format!(" and {further} more"),
        };
        self.client
            .audit()
            .note(change.words().2, with_fields(id, change.changes()) + &further)
            .await;
        Ok(told)
    }

    async fn change_unrecorded(self, id: &JobId, change: &JobChange) -> Result<Vec<ChangedJob>> {
        let told = match change {
            JobChange::Stop if self.stop_one(id).await? => "stopped",
            JobChange::Stop => TOLD,
            JobChange::StopTree => return self.stop_tree(id).await,
            JobChange::Retry { with_dependents: false, changes } => {
                self.retry_one(id, changes).await?.as_str()
            }
            JobChange::Retry { with_dependents: true, changes } => {
                return self.retry_tree(id, changes).await;
            }
            JobChange::Delete => {
                self.delete_one(id).await?;
                "deleted"
            }
            JobChange::Edit(edit) => self.edit_one(id, edit).await?.as_str(),
        };
        Ok(vec![(id.clone(), Ok(told.to_owned()))])
    }

    /// Changes each of these jobs, also after failures.
    ///
    /// # Errors
    /// [`ClientError::Store`] ends it at once; the jobs before are in `changed`.
    pub async fn change_many(
        self,
        ids: impl IntoIterator<Item = &JobId>,
        change: &JobChange,
        changed: &mut ManyChanged,
    ) -> Result<()> {
        // A retry with dependents has changed some of the others.
        let ids: Vec<&JobId> = ids.into_iter().filter(|id| !changed.done.contains(*id)).collect();
        let mut step = ManyChanged::default();
        let end = self.change_each(ids, change, &mut step).await;
        if !step.done.is_empty() {
            let jobs = counted(step.done.len() as u64, "job", "jobs");
            let ids: Vec<&str> = step.done.iter().map(JobId::as_str).take(10).collect();
            self.client.audit().note(change.words().2, format!("{jobs}: {}", ids.join(", "))).await;
        }
        changed.add(step);
        end
    }

    async fn change_each(
        self,
        ids: impl IntoIterator<Item = &JobId>,
        change: &JobChange,
        changed: &mut ManyChanged,
    ) -> Result<()> {
        for id in ids {
            if changed.done.contains(id) {
                continue;
            }
            let told = match self.change_unrecorded(id, change).await {
                Err(error @ ClientError::Store(_)) => return Err(error),
                told => told.unwrap_or_else(|error| vec![(id.clone(), Err(error))]),
            };
            for (id, result) in told {
                match result {
                    Ok(word) => {
                        changed.told += usize::from(word == TOLD);
                        changed.done.insert(id);
                    }
                    Err(error) => changed.leave(&id, error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Searches for the jobs that a query and a search find, that are `wanted` and that a change can change: at most
    /// `query.limit`, the latest.
    pub async fn to_change(
        self,
        query: &ListQuery,
        search: &JobSearch,
        change: &JobChange,
        wanted: impl Fn(&JobSummary) -> bool,
    ) -> Result<FoundJobs> {
        let query = change.narrow(query, search);
        let fits = |job: &JobSummary| change.fits(job.status) && wanted(job);
        self.find_many(&query, search, fits).await
    }

    /// Counts the jobs that [`JobClient::to_change`] finds, for at most [`ListQuery::BUDGET`]. Returns the number, and whether
    /// these are all.
    pub async fn count_to_change(
        self,
        query: &ListQuery,
        search: &JobSearch,
        change: &JobChange,
        wanted: impl Fn(&JobSummary) -> bool,
    ) -> Result<(u64, bool)> {
        let (limit, budget) = (usize::MAX, Some(ListQuery::BUDGET));
        let query = ListQuery { limit, budget, ..change.narrow(query, search) };
        let fits = |job: &JobSummary| change.fits(job.status) && wanted(job);
        let mut number = 0;
        let found = self.each_found(query, search, fits, |_| number += 1).await?;
        Ok((number, found.complete))
    }
}

/// Returns a job for the record of its change, with the names of the fields that change.
pub(super) fn with_fields(id: &JobId, changes: &Map<String, Value>) -> String {
    let names: Vec<&str> = changes.keys().map(String::as_str).collect();
    if names.is_empty() { id.to_string() } else { format!("{id} ({})", names.join(", ")) }
}
