//! Changes of one job or of many: the same for the command line, the API and the page.

use std::collections::BTreeSet;

use super::{Client, ClientError, Matching};
use crate::proto::job::{JobId, JobStatus};
use crate::store::{JobEdit, JobSearch, JobSummary, ListQuery};

/// A change of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobChange {
    /// Runs an ended job again.
    Retry {
        /// Also its dependents that failed because it did.
        with_dependents: bool,
    },
    /// Stops a job that has not ended.
    Stop,
    /// Deletes a job that does not run.
    Delete,
    /// Changes a job that has not started.
    Edit(JobEdit),
}

/// A job, and what was done to it.
pub type ChangedJob = (JobId, Result<String, ClientError>);

/// The jobs that were changed, and the number of those that were not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManyChanged {
    /// The jobs that were changed.
    pub done: BTreeSet<JobId>,
    /// The number of jobs that stay as they are.
    pub left: u64,
    /// Why the first of these does.
    pub reason: Option<String>,
}

impl JobChange {
    /// Its word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Retry { .. } => "retry",
            Self::Stop => "stop",
            Self::Delete => "delete",
            Self::Edit(_) => "edit",
        }
    }

    /// The word for what was done.
    pub fn done(&self) -> &'static str {
        match self {
            Self::Retry { .. } => "retried",
            Self::Stop => "stopped",
            Self::Delete => "deleted",
            Self::Edit(_) => "edited",
        }
    }

    /// Returns true if it destroys something, so that a person or program has to confirm it for many jobs.
    pub fn destroys(&self) -> bool {
        matches!(self, Self::Stop | Self::Delete)
    }

    /// Returns true if it can do something to a job in this state.
    pub fn fits(&self, status: JobStatus) -> bool {
        match self {
            Self::Stop => !status.is_terminal(),
            Self::Retry { .. } => status.is_terminal(),
            Self::Delete => status != JobStatus::Started,
            Self::Edit(_) => status.is_waiting(),
        }
    }

    /// Returns the states to look at, if filters name none: those to which it can do something, but nobody
    /// wants all that finished to run again.
    fn states(&self) -> Vec<JobStatus> {
        match self {
            Self::Retry { .. } => vec![JobStatus::Error],
            other => JobStatus::ALL.into_iter().filter(|status| other.fits(*status)).collect(),
        }
    }
}

impl ManyChanged {
    /// Counts a job that stays as it is.
    pub fn leave(&mut self, reason: &str) {
        self.left += 1;
        self.reason.get_or_insert_with(|| reason.to_owned());
    }
}

impl Client {
    /// Changes a job. Returns what was done to it, and to its dependents if they change too.
    ///
    /// # Errors
    /// As [`Client::stop_job`], [`Client::retry_job`], [`Client::delete_job`] and [`Client::edit_job`].
    pub async fn change_job(
        &self,
        id: &JobId,
        change: &JobChange,
    ) -> Result<Vec<ChangedJob>, ClientError> {
        let told = match change {
            JobChange::Stop if self.stop_job(id).await? => "stopped",
            JobChange::Stop => "told to stop",
            JobChange::Retry { with_dependents: false } => self.retry_job(id).await?.as_str(),
            JobChange::Retry { with_dependents: true } => {
                let jobs = self.retry_job_with_dependents(id).await?.into_iter();
                return Ok(jobs.map(|(id, of)| (id, of.map(|of| of.to_string()))).collect());
            }
            JobChange::Delete => {
                self.delete_job(id).await?;
                "deleted"
            }
            JobChange::Edit(edit) => self.edit_job(id, edit).await?.as_str(),
        };
        Ok(vec![(id.clone(), Ok(told.to_owned()))])
    }

    /// Changes each of these jobs, also after failures.
    ///
    /// # Errors
    /// [`ClientError::Store`] ends it at once; the jobs before are in `changed`.
    pub async fn change_many(
        &self,
        ids: impl IntoIterator<Item = &JobId>,
        change: &JobChange,
        changed: &mut ManyChanged,
    ) -> Result<(), ClientError> {
        for id in ids {
            // A retry with dependents has changed some of the others.
            if changed.done.contains(id) {
                continue;
            }
            let told = match self.change_job(id, change).await {
                Err(error @ ClientError::Store(_)) => return Err(error),
                told => told.unwrap_or_else(|error| vec![(id.clone(), Err(error))]),
            };
            for (id, result) in told {
                match result {
                    Ok(_) => {
                        changed.done.insert(id);
                    }
                    Err(error) => changed.leave(&error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Looks for the jobs that a query and a search find, that are `wanted` and that a change can change.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn to_change(
        &self,
        mut query: ListQuery,
        search: &JobSearch,
        change: &JobChange,
        wanted: impl Fn(&JobSummary) -> bool,
    ) -> Result<Matching, ClientError> {
        if query.statuses.is_empty() {
            query.statuses = change.states();
        }
        let mut search = search.clone();
        // Nobody wants jobs to run again that were stopped or replaced, unless they ask for them.
        if matches!(change, JobChange::Retry { .. }) && !search.any_end && search.cause.is_none() {
            search.cancelled = search.cancelled.or(Some(false));
        }
        let fits = |job: &JobSummary| change.fits(job.status) && wanted(job);
        self.matching(&query, &search, fits).await
    }
}
