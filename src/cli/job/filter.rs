//! The filters of `hero job list` and of the commands for many jobs: an option for each row of their table.

use std::fmt::Write;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;

use super::past_time::PastZone;
use crate::cli::input::bad;
use crate::cli::no_results::{NoResults, quoted};
use crate::client::Client;
use crate::error::Error;
use crate::proto::job_filter::{FilterRow, FilterTest, JOB_FILTERS, JobFilter};
use crate::proto::text::counted;
use crate::store::{JobSearch, ListQuery};

/// The filter whose value is the id of a job.
const PARENT: &str = "parent";

/// A choice of jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct JobFilters {
    pub(super) filter: JobFilter,
    pub(super) zone: PastZone,
}

impl Args for JobFilters {
    fn augment_args(command: Command) -> Command {
        PastZone::augment_args(command.args(JOB_FILTERS.iter().map(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for JobFilters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut filter = JobFilter::default();
        for row in &JOB_FILTERS {
            for value in matches.get_many::<String>(row.name).into_iter().flatten() {
                filter = filter.and(row.name, value);
            }
        }
        Ok(Self { filter, zone: PastZone::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the option of a filter.
fn option(row: &'static FilterRow) -> Arg {
    let option = row.option();
    let others = row.names().map(|name| name.replace('_', "-")).filter(|name| *name != option);
    let arg = Arg::new(row.name).aliases(others).long(option).help(row.doc);
    let arg = if row.test == FilterTest::ScriptType { arg.short('t') } else { arg };
    if row.is_flag() {
        let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
        return arg.value_name("true|false").value_parser(["true", "false"]);
    }
    let action = if row.is_list() { ArgAction::Append } else { ArgAction::Set };
    arg.action(action).value_name(row.value)
}

impl JobFilters {
    /// Returns true if any filter is set.
    pub(super) fn is_given(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Returns it for dead letters alone.
    pub(super) fn of_dead(self) -> Self {
        Self { filter: self.filter.with("dead", "true"), ..self }
    }

    /// Counts the jobs that were found.
    pub(super) fn counted(&self, number: usize) -> String {
        let noun = self.filter.noun();
        counted(number as u64, noun, &format!("{noun}s"))
    }

    /// Returns the sentence that says that no job fits.
    pub(super) fn no_results(&self) -> NoResults {
        NoResults::new(&self.filter.sentence(self.filter.noun()))
    }

    /// Returns the query and the search of the filters. A parent may be the beginning of an id.
    pub(super) async fn search(
        &self,
        limit: usize,
        client: &Client,
    ) -> Result<(ListQuery, JobSearch), Error> {
        let now = client.now().await?;
        let Some(parent) = self.filter.value(PARENT) else { return self.query(limit, now) };
        let parent = client.job_id(parent).await?;
        let values = self.filter.values().map(|(row, value)| match row.name {
            PARENT => (PARENT, parent.as_str()),
            name => (name, value),
        });
        let (filter, zone) = (JobFilter::of(values), self.zone.clone());
        Self { filter, zone }.query(limit, now)
    }

    /// Returns the same, with ids as they are. `now` is the time of Redis.
    fn query(&self, limit: usize, now: Timestamp) -> Result<(ListQuery, JobSearch), Error> {
        let found = JobSearch::of(&self.filter, &self.zone.zone_or_local(), now);
        let option = |row: &FilterRow| format!("--{}", row.option());
        let (query, search) =
            found.map_err(|error| bad(format!("{}: {}", option(error.row), error.reason)))?;
        Ok((ListQuery { limit, ..query }, search.seeing_all(true)))
    }

    /// Returns the options as a command line has them.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        let options = self.filter.values().map(|(row, value)| (row.option(), value));
        let zone = self.zone.name().map(|name| ("timezone".to_owned(), name));
        for (option, value) in options.chain(zone) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+/,".contains(c);
            let is_plain = !value.is_empty() && value.chars().all(is_plain);
            let value = if is_plain { value.to_owned() } else { quoted(value) };
            let _ = match JobFilter::row(&option) {
                Some(row) if row.is_flag() && value == "true" => write!(words, " --{option}"),
                Some(row) if row.is_flag() => write!(words, " --{option}={value}"),
                _ => write!(words, " --{option} {value}"),
            };
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(&str, &str)]) -> JobFilters {
        let filter = JobFilter::of(values.iter().copied());
        JobFilters { filter, zone: PastZone::default() }
    }

    #[test]
    fn options_are_written_as_a_shell_reads_them() {
        let values = [("error", "can't"), ("failed_because", "timeout"), ("late", "false")];
        let filters = of(&[&values[..], &[("type", "osis"), ("dead", "true")]].concat());
        let words = r" --type osis --error 'can'\''t' --failed-because timeout --late=false --dead";
        assert_eq!(filters.words(), words);
        assert!(filters.is_given() && !JobFilters::default().is_given());
    }

    #[test]
    fn options_are_read_by_each_name_of_a_filter() {
        let read = |args: &[&str]| {
            let command = JobFilters::augment_args(Command::new("list"));
            let matches = command.try_get_matches_from(["list"].iter().chain(args))?;
            Ok::<_, clap::Error>(JobFilters::from_arg_matches(&matches)?.filter)
        };
        let args =
            ["--state", "failed,expired", "-t", "osis", "--tags", "a", "--tag", "b", "--q", "x"];
        let found = read(&[&args[..], &["--late", "--held=false"]].concat()).expect("legal");
        let values = [("type", "osis"), ("tag", "a"), ("tag", "b"), ("text", "x")];
        let expected = JobFilter::of([("status", "failed,expired")].into_iter().chain(values));
        assert_eq!(found, expected.and("late", "true").and("held", "false"));
        assert!(read(&["--late", "false"]).is_err() && read(&["--stat", "failed"]).is_err());
    }

    #[test]
    fn illegal_value_is_refused_with_its_option() {
        let now = Timestamp::UNIX_EPOCH;
        let wrong = of(&[("failed_because", "luck")]).query(1, now).expect_err("no cause").message;
        assert!(wrong.starts_with("--failed-because: ") && wrong.contains("timeout"), "{wrong}");
    }
}
