//! Stops, retries and deletes jobs: named ones, or all that match filters.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::each::apply;
use super::filter::JobFilters;
use super::list::table;
use crate::cli::correction::check;
use crate::cli::no_results::NoResults;
use crate::cli::{Global, output};
use crate::client::{Client, ClientError, JobChange, ManyChanged};
use crate::error::{Error, Exit};
use crate::proto::job::JobId;
use crate::proto::text::counted;
use crate::store::{Cursor, FoundJobs, JobSearch, ListQuery};

/// The number of jobs that are found and changed in one step.
const STEP: usize = ListQuery::LIMIT_MAX;

fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "expected a number from 1 on".to_owned())
}

/// Jobs by their ids, or by filters.
#[derive(Debug, Args)]
pub(in crate::cli) struct JobChoice {
    /// The jobs: ids, or their unique beginnings
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: JobFilters,
    /// The maximum number of jobs that filters choose, the latest; without it, all
    #[arg(long, value_name = "NUMBER", default_value_t = usize::MAX, hide_default_value = true,
          value_parser = parse_limit)]
    pub(super) limit: usize,
    /// Print the jobs that the filters choose, and change none
    #[arg(long, conflicts_with = "ids")]
    pub(super) dry_run: bool,
    /// Confirm that all jobs that match are stopped or deleted
    #[arg(long)]
    pub(super) yes: bool,
    /// Named jobs have to be dead letters.
    #[arg(skip)]
    pub(super) only_dead: bool,
}

impl JobChoice {
    /// Returns the choice of dead letters alone, all of them without ids and filters.
    pub(in crate::cli) fn of_dead(mut self) -> Self {
        self.only_dead = true;
        if self.ids.is_empty() {
            self.filter = self.filter.of_dead();
        }
        self
    }

    /// Returns the id if one job is named and nothing else.
    pub(super) fn only_id(&self) -> Option<&str> {
        match self.ids.as_slice() {
            [id] if !self.filter.is_given() => Some(id),
            _ => None,
        }
    }

    /// Returns the time zone of given times.
    pub(super) fn zone(&self) -> Option<&TimeZone> {
        self.filter.zone.zone()
    }

    /// Applies an operation to each job, also after failures. The exit code comes from the first
    /// failure.
    pub(in crate::cli) async fn each(
        &self,
        client: &Client,
        global: &Global,
        change: &JobChange,
    ) -> Result<ExitCode, Error> {
        match (self.ids.is_empty(), self.filter.is_given()) {
            (false, false) => {
                let config = global.config()?;
                for id in &self.ids {
                    check(client, &client.job_id(id).await?, change.changes(), config).await?;
                }
                let act = async |id: &JobId| {
                    if self.only_dead {
                        client.dead_letter(id).await?;
                    }
                    let told = client.change_job(id, change).await?;
                    // A job that runs again is told by what was done, not by its new state.
                    let by_word = matches!(change, JobChange::Retry { with_dependents: false, .. });
                    let word = |of: Result<String, ClientError>| match of {
                        Ok(_) if by_word => Ok(change.done().to_owned()),
                        other => other,
                    };
                    Ok(told.into_iter().map(|(id, of)| (id, word(of))).collect())
                };
                apply(client, &self.ids, global, act).await
            }
            (true, true) => self.all(client, global, change).await,
            (is_empty, _) => {
                let word = change.word();
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
        change: &JobChange,
    ) -> Result<ExitCode, Error> {
        let (query, search) = self.filter.search(self.limit, client).await?;
        let asked = (&query, &search);
        if self.dry_run {
            let found = client.to_change(&query, &search, change, |_| true).await?;
            let jobs = self.filter.counted(found.items.len());
            Self::say_if_more(&found, &jobs);
            self.none(change).among(&found).report(global, found.items.is_empty());
            let text = || table(&found.items, Timestamp::now(), query.dead).show(global.look());
            let document = || json!({ "jobs": found.items, "more": found.next.is_some() });
            global.print(document, text)?;
            output::note(&format!("hero: {jobs} would be {}", change.done()));
            return Ok(ExitCode::SUCCESS);
        }
        let first = step(client, asked, change, self.limit.min(STEP), None).await?;
        if change.destroys() && !self.yes && !first.items.is_empty() {
            let more = if first.next.is_some() { "at least " } else { "" };
            let jobs = self.filter.counted(first.items.len());
            let message = format!(
                "cannot {} {more}{jobs} without confirmation; add --yes, or --dry-run to list them",
                change.word()
            );
            return Err(Error::new(Exit::Usage, message));
        }
        self.none(change).among(&first).report(global, first.items.is_empty());
        let changed = self.change_all(client, global, change, (asked, first)).await?;
        let document = || {
            let ManyChanged { done, told, left, .. } = &changed;
            let mut document = json!({ change.done(): done.len() });
            if matches!(change, JobChange::Stop | JobChange::StopTree) {
                document["told"] = (*told).into();
            }
            document["left"] = (*left).into();
            document["reason"] = changed.reason().into();
            document
        };
        let done = self.filter.counted(changed.done.len() - changed.told);
        global.print(document, || sentence(&done, &changed, change))?;
        Ok(if changed.left == 0 { ExitCode::SUCCESS } else { Exit::Data.into() })
    }

    /// Changes the jobs of the first step, and of all further ones. A changed job stands in front of those that are left.
    async fn change_all(
        &self,
        client: &Client,
        global: &Global,
        change: &JobChange,
        (asked, first): (Asked<'_>, FoundJobs),
    ) -> Result<ManyChanged, Error> {
        let (mut found, mut changed, mut seen) = (first, ManyChanged::default(), 0);
        let config = global.config()?;
        loop {
            for job in &found.items {
                check(client, &job.id, change.changes(), config).await?;
            }
            seen += found.items.len();
            let ids = found.items.iter().map(|job| &job.id);
            client.change_many(ids, change, &mut changed).await.map_err(|error| {
                let error = Error::from(error);
                let before =
                    counted(changed.done.len() as u64, "job was changed", "jobs were changed");
                Error::new(error.exit, format!("{}; {before} before it", error.message))
            })?;
            if found.next.is_none() || seen >= self.limit {
                let jobs = self.filter.counted(seen);
                output::passing_note("");
                Self::say_if_more(&found, &jobs);
                return Ok(changed);
            }
            output::passing_note(&format!("hero: {} {}", changed.done.len(), change.done()));
            let most = (self.limit - seen).min(STEP);
            found = step(client, asked, change, most, found.next).await?;
        }
    }

    /// Returns the sentence for no job: others may match that cannot be changed so.
    fn none(&self, change: &JobChange) -> NoResults {
        self.filter.no_results().by("that can be", Some(change.done()))
    }

    fn say_if_more(found: &FoundJobs, jobs: &str) {
        if found.next.is_some() {
            output::note(&format!("hero: more may match; these are the latest {jobs} (--limit)"));
        }
    }
}

/// The jobs that are asked for.
type Asked<'a> = (&'a ListQuery, &'a JobSearch);

/// Finds the next jobs to change, at most so many.
async fn step(
    client: &Client,
    (query, search): Asked<'_>,
    change: &JobChange,
    limit: usize,
    cursor: Option<Cursor>,
) -> Result<FoundJobs, Error> {
    let query = ListQuery { limit, cursor, ..query.clone() };
    Ok(client.to_change(&query, search, change, |_| true).await?)
}

/// Counts the changed jobs, and says why the rest stays.
fn sentence(done: &str, changed: &ManyChanged, change: &JobChange) -> String {
    let told = match changed.told {
        0 => String::new(),
        told => format!(", {told} told to stop"),
    };
    let done = format!("{done} {}{told}", change.done());
    match changed.reason() {
        Some(reason) => {
            let left = counted(changed.left, "job stays as it is", "jobs stay as they are");
            format!("{done}; {left}: {reason}\n")
        }
        None => format!("{done}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_counts_what_was_done_and_says_why_the_rest_stays() {
        let id = |name: &str| name.parse().expect("legal");
        let done = [id("a"), id("b")].into();
        let mut changed = ManyChanged { done, ..ManyChanged::default() };
        let retry = JobChange::Retry { with_dependents: false, changes: serde_json::Map::new() };
        assert_eq!(sentence("2 jobs", &changed, &retry), "2 jobs retried\n");
        changed.told = 1;
        assert_eq!(
            sentence("1 job", &changed, &JobChange::Stop),
            "1 job stopped, 1 told to stop\n"
        );
        changed.told = 0;
        changed.leave(&id("c"), "it runs".to_owned());
        assert_eq!(
            sentence("2 jobs", &changed, &JobChange::Delete),
            "2 jobs deleted; 1 job stays as it is: it runs\n"
        );
    }
}
