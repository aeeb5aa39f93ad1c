//! Stops, retries and deletes jobs: named ones, or all that match filters.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::each::{Told, apply};
use super::filter::JobFilters;
use super::list::table;
use crate::cli::{Global, output};
use crate::client::{Client, ClientError, Matching};
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::counted;
use crate::store::JobSummary;

/// Jobs by their ids, or by filters.
#[derive(Debug, Args)]
pub(in crate::cli) struct JobChoice {
    /// The jobs: ids, or their unique beginnings
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: JobFilters,
    /// The most jobs that filters choose, the latest
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Print the jobs that the filters choose, and change none
    #[arg(long, conflicts_with = "ids")]
    dry_run: bool,
    /// Confirm that all jobs that match are stopped or deleted
    #[arg(long)]
    yes: bool,
}

/// Something that can be done to many jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BulkVerb {
    Stop,
    Retry,
    Delete,
}

impl BulkVerb {
    fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Stop => "stopped",
            Self::Retry => "retried",
            Self::Delete => "deleted",
        }
    }

    /// Returns true if it can do something to a job in this state.
    fn fits(self, status: JobStatus) -> bool {
        match self {
            Self::Stop => !status.is_terminal(),
            Self::Retry => status.is_terminal(),
            Self::Delete => status != JobStatus::Started,
        }
    }

    /// Returns the states to look at, if filters name none: those to which it can do something, but nobody
    /// wants all that finished to run again.
    fn states(self) -> Vec<JobStatus> {
        match self {
            Self::Retry => vec![JobStatus::Error],
            other => JobStatus::ALL.into_iter().filter(|status| other.fits(*status)).collect(),
        }
    }
}

impl JobChoice {
    /// Applies an operation to each job, also after failures. The exit code is that of the first
    /// failure.
    pub(super) async fn each(
        &self,
        client: &Client,
        global: &Global,
        verb: BulkVerb,
        act: impl AsyncFn(&JobId) -> Result<Vec<Told>, ClientError>,
    ) -> Result<ExitCode, Error> {
        match (self.ids.is_empty(), self.filter.is_given()) {
            (false, false) => apply(client, &self.ids, global, act).await,
            (true, true) => self.all(client, global, verb, act).await,
            (is_empty, _) => {
                let word = verb.word();
                let what = if is_empty {
                    "neither ids nor filters are given"
                } else {
                    "both ids and filters are given"
                };
                let message = format!(
                    "cannot {word} jobs: {what}; hero job {word} ID, or \
                     hero job {word} with filters such as --type and --since"
                );
                Err(Error::new(Exit::Usage, message))
            }
        }
    }

    async fn all(
        &self,
        client: &Client,
        global: &Global,
        verb: BulkVerb,
        act: impl AsyncFn(&JobId) -> Result<Vec<Told>, ClientError>,
    ) -> Result<ExitCode, Error> {
        let found = self.matching(client, verb).await?;
        let jobs = counted(found.jobs.len() as u64, "job", "jobs");
        if found.more {
            output::note(&format!("hero: more jobs match; these are the latest {jobs}"));
        }
        if self.dry_run {
            let text = || table(&found.jobs, Timestamp::now()).show(global.look());
            output::print(global.json, || json!({ "jobs": found.jobs }), text)?;
            output::note(&format!("hero: {jobs} would be {}", verb.done()));
            return Ok(ExitCode::SUCCESS);
        }
        if verb != BulkVerb::Retry && !self.yes && !found.jobs.is_empty() {
            let message = format!(
                "cannot {} {jobs} without confirmation; add --yes, or --dry-run to list them",
                verb.word()
            );
            return Err(Error::new(Exit::Usage, message));
        }
        let tally = BulkTally::of(&found.jobs, act).await?;
        output::print(global.json, || tally.document(verb), || tally.sentence(verb))?;
        Ok(if tally.left == 0 { ExitCode::SUCCESS } else { Exit::Data.into() })
    }

    async fn matching(&self, client: &Client, verb: BulkVerb) -> Result<Matching, Error> {
        let mut query = self.filter.query(self.limit as usize)?;
        if query.statuses.is_empty() {
            query.statuses = verb.states();
        }
        let states = self.filter.states()?;
        let search = self.filter.search(client.now().await?)?;
        let fits = |job: &JobSummary| verb.fits(job.status) && states.wants(job);
        Ok(client.matching(&query, &search, fits).await?)
    }
}

/// The number of jobs that were changed, and of those that were not.
#[derive(Debug, Default)]
struct BulkTally {
    done: BTreeSet<JobId>,
    left: u64,
    /// Why the first of the others was not changed.
    reason: Option<String>,
}

impl BulkTally {
    /// Changes each job. Without Redis it ends at once.
    async fn of(
        jobs: &[JobSummary],
        act: impl AsyncFn(&JobId) -> Result<Vec<Told>, ClientError>,
    ) -> Result<Self, Error> {
        let mut tally = Self::default();
        for job in jobs {
            // A retry with dependents has changed some of the others.
            if tally.done.contains(&job.id) {
                continue;
            }
            let told = match act(&job.id).await {
                Err(error @ ClientError::Store(_)) => {
                    let error = Error::from(error);
                    let message = format!(
                        "{}; {} before it",
                        error.message,
                        counted(tally.done.len() as u64, "job was changed", "jobs were changed")
                    );
                    return Err(Error::new(error.exit, message));
                }
                told => told.unwrap_or_else(|error| vec![(job.id.clone(), Err(error))]),
            };
            for (id, result) in told {
                match result {
                    Ok(_) => {
                        tally.done.insert(id);
                    }
                    Err(error) => {
                        tally.left += 1;
                        tally.reason.get_or_insert_with(|| error.to_string());
                    }
                }
            }
        }
        Ok(tally)
    }

    fn document(&self, verb: BulkVerb) -> Value {
        json!({ verb.done(): self.done.len(), "left": self.left, "reason": self.reason })
    }

    fn sentence(&self, verb: BulkVerb) -> String {
        let done = counted(self.done.len() as u64, "job", "jobs");
        let done = format!("{done} {}", verb.done());
        match &self.reason {
            Some(reason) => {
                let left = counted(self.left, "job stays as it is", "jobs stay as they are");
                format!("{done}; {left}: {reason}\n")
            }
            None => format!("{done}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_counts_what_was_done_and_says_why_the_rest_stays() {
        let id = |name: &str| name.parse().expect("legal");
        let mut tally = BulkTally { done: [id("a"), id("b")].into(), left: 0, reason: None };
        assert_eq!(tally.sentence(BulkVerb::Retry), "2 jobs retried\n");
        tally.left = 1;
        tally.reason = Some("it runs".to_owned());
        assert_eq!(
            tally.sentence(BulkVerb::Delete),
            "2 jobs deleted; 1 job stays as it is: it runs\n"
        );
    }
}
