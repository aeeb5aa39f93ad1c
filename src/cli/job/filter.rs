//! The filters by which `hero job list` and the commands for many jobs choose jobs.

use std::fmt::Write;

use clap::Args;
use jiff::Timestamp;

use super::moment::PastZone;
use crate::cli::exec::parsed;
use crate::error::Error;
use crate::proto::job::JobStatus;
use crate::store::{JobSearch, ListQuery};

/// A choice of jobs.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct JobFilters {
    // Not by a doc comment, in which the longest name would need backticks.
    #[arg(
        long,
        help = "Only jobs in this state: created, waiting_for_prerequisites, scheduled, dispatched, \
                started, finished or error"
    )]
    pub(super) status: Option<String>,
    /// Only jobs of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    pub(super) script_type: Option<String>,
    /// Only jobs submitted since then: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME")]
    pub(super) since: Option<String>,
    /// Only jobs submitted until then
    #[arg(long, value_name = "DURATION|TIME")]
    pub(super) until: Option<String>,
    #[command(flatten)]
    pub(super) zone: PastZone,
    /// Only jobs of this caller
    #[arg(long, value_name = "TEXT")]
    pub(super) caller: Option<String>,
    /// Only jobs whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(super) name: Option<String>,
    /// Only jobs with this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub(super) tags: Vec<String>,
    /// Only jobs whose error contains this text, within its first 200 characters
    #[arg(long, value_name = "TEXT")]
    pub(super) error: Option<String>,
    /// Only jobs that failed because of this: stopped, timeout, prerequisite, crashed, invalid or script
    #[arg(long, value_name = "WORD")]
    pub(super) failed_because: Option<String>,
    /// Only jobs that were stopped
    #[arg(long)]
    pub(super) cancelled: bool,
}

impl JobFilters {
    /// Returns true if any filter is given.
    pub(super) fn is_given(&self) -> bool {
        self.texts().iter().any(|(_, text)| text.is_some())
            || !self.tags.is_empty()
            || self.cancelled
    }

    fn texts(&self) -> [(&'static str, Option<&String>); 8] {
        [
            ("--caller", self.caller.as_ref()),
            ("--name", self.name.as_ref()),
            ("--error", self.error.as_ref()),
            ("--failed-because", self.failed_because.as_ref()),
            ("--since", self.since.as_ref()),
            ("--until", self.until.as_ref()),
            ("--status", self.status.as_ref()),
            ("--type", self.script_type.as_ref()),
        ]
    }

    /// Returns the state that is asked for.
    pub(super) fn state(&self) -> Result<Option<JobStatus>, Error> {
        self.status.as_deref().map(parsed).transpose()
    }

    /// Returns the query by what indexes have.
    pub(super) fn query(&self, limit: usize) -> Result<ListQuery, Error> {
        Ok(ListQuery {
            status: self.state()?,
            script_type: self.script_type.as_deref().map(parsed).transpose()?,
            limit,
            cursor: None,
        })
    }

    /// Returns the search by what no index has. `now` is the time of Redis.
    pub(super) fn search(&self, now: Timestamp) -> Result<JobSearch, Error> {
        let time = |option: &str, text: Option<&str>| {
            text.map(|text| self.zone.read(option, text, now)).transpose()
        };
        Ok(JobSearch {
            caller: self.caller.clone(),
            name: self.name.clone(),
            tags: self.tags.clone(),
            error: self.error.clone(),
            cause: self.failed_because.as_deref().map(parsed).transpose()?,
            cancelled: self.cancelled.then_some(true),
            since: time("--since", self.since.as_deref())?,
            until: time("--until", self.until.as_deref())?,
            ..JobSearch::default()
        })
    }

    /// Returns the options as a command line has them.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        let tags = self.tags.iter().map(|tag| ("--tag", tag.as_str()));
        let texts = self.texts().into_iter();
        let given = texts.filter_map(|(option, text)| Some((option, text?.as_str())));
        let given = given.chain(self.zone.name().map(|name| ("--timezone", name)));
        for (option, text) in given.chain(tags) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+/".contains(c);
            if !text.is_empty() && text.chars().all(is_plain) {
                let _ = write!(words, " {option} {text}");
            } else {
                let _ = write!(words, " {option} '{}'", text.replace('\'', r"'\''"));
            }
        }
        if self.cancelled {
            words.push_str(" --cancelled");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_a_shell_reads_them() {
        let filter = JobFilters {
            status: Some("error".to_owned()),
            error: Some("can't".to_owned()),
            cancelled: true,
            ..JobFilters::default()
        };
        assert_eq!(filter.words(), r" --error 'can'\''t' --status error --cancelled");
        assert!(filter.is_given() && !JobFilters::default().is_given());
    }

    #[test]
    fn durations_count_back_from_now() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().expect("a time");
        let filter = JobFilters {
            since: Some("24h".to_owned()),
            until: Some("2026-01-01T12:00:00Z".to_owned()),
            ..JobFilters::default()
        };
        let search = filter.search(now).expect("legal");
        assert_eq!(search.since, "2026-01-01T00:00:00Z".parse().ok());
        assert_eq!(search.until, "2026-01-01T12:00:00Z".parse().ok());
        let wrong = JobFilters { failed_because: Some("luck".to_owned()), ..JobFilters::default() };
        assert!(wrong.search(now).expect_err("no cause").message.contains("timeout"));
    }
}
