//! The filters of `hero job list` and of the commands for many jobs: an option for each row of their table.

use std::fmt::Write;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::cli::answer::NoResults;
use crate::cli::api::ApiMethods;
use crate::cli::input::{bad, quoted};
use crate::cli::time::PastZone;
use crate::error::Error;
use crate::proto::job_filter::{FilterRow, FilterTest, JOB_FILTERS, JobFilter};
use crate::proto::text::counted;
use crate::store::JobSearch;

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
    pub(super) fn is_given(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Returns whether no other filter is given than the one of dead letters.
    pub(super) fn chooses_none(&self) -> bool {
        self.filter.values().all(|(row, _)| row.name == "dead")
    }

    pub(super) fn counted(&self, number: u64) -> String {
        let noun = self.filter.noun();
        counted(number, noun, &format!("{noun}s"))
    }

    pub(super) fn no_results(&self) -> NoResults {
        NoResults::new(&self.filter.sentence(self.filter.noun()))
    }

    /// Returns them as parameters of the API. Times are read here, in the zone of the user.
    pub(super) async fn params(&self, api: &ApiMethods) -> Result<Map<String, Value>, Error> {
        let now = api.now().await?;
        self.check(now)?;
        let mut params = Map::new();
        for (row, value) in self.filter.values() {
            let value = match row.test {
                FilterTest::Since(_) | FilterTest::Until(_) => {
                    let option = format!("--{}", row.option());
                    self.zone.read(&option, value, now)?.to_string().into()
                }
                _ if row.is_flag() => Value::Bool(value == "true"),
                _ => Value::from(value),
            };
            if !row.is_list() {
                params.insert(row.name.to_owned(), value);
            } else if let Some(list) =
                params.entry(row.name).or_insert_with(|| json!([])).as_array_mut()
            {
                list.push(value);
            }
        }
        Ok(params)
    }

    /// Refuses a value that is not legal, by its option.
    fn check(&self, now: Timestamp) -> Result<(), Error> {
        let found = JobSearch::of(&self.filter, &self.zone.zone_or_local(), now);
        let wrong = |row: &FilterRow, why: &str| bad(format!("--{}: {why}", row.option()));
        found.map(drop).map_err(|error| wrong(error.row, &error.reason))
    }

    /// Returns the options as a command line has them.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        let options = self.filter.values().map(|(row, value)| (row.option(), value));
        let zone = self.zone.timezone.as_ref().and_then(TimeZone::iana_name);
        let zone = zone.map(|name| ("timezone".to_owned(), name));
        for (option, value) in options.chain(zone) {
            let value = quoted(value);
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
        let wrong = of(&[("failed_because", "luck")]).check(now).expect_err("no cause").message;
        assert!(wrong.starts_with("--failed-because: ") && wrong.contains("timeout"), "{wrong}");
    }
}
