//! The filters of `hero job list` and of the commands for many jobs.

use std::fmt::Write;

use clap::Args;
use jiff::Timestamp;

use super::moment::PastZone;
use crate::cli::input::parsed;
use crate::cli::sought::quoted;
use crate::error::{Error, Exit};
use crate::proto::error_kind::ErrorKindFilter;
use crate::proto::job::{JobEnd, JobStatus};
use crate::proto::text::{counted, shown};
use crate::store::{JobSearch, ListQuery};

/// A choice of jobs.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct JobFilters {
    // Not by a doc comment: there the longest name would need backticks.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "STATE",
        help = "Only jobs in these states: waiting (not started yet), running, finished, failed, cancelled \
                (stopped), replaced (by a later job with their unique key) or expired (failed, as they did not \
                start in time); or created, \
                waiting_for_prerequisites, scheduled, dispatched, started and error (the last three \
                together), as JSON has them. Several with commas, or repeated"
    )]
    pub(super) status: Vec<String>,
    /// Only jobs of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    pub(super) script_type: Option<String>,
    /// Only jobs submitted since then: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339;
    /// however long ago they ran or failed
    #[arg(long, value_name = "DURATION|TIME")]
    pub(super) since: Option<String>,
    /// Only jobs submitted until then: with 2d, two days ago or earlier
    #[arg(long, value_name = "DURATION|TIME")]
    pub(super) until: Option<String>,
    /// Only jobs that ended since then
    #[arg(long, value_name = "DURATION|TIME")]
    pub(super) ended_since: Option<String>,
    /// Only jobs that ended until then
    #[arg(long, value_name = "DURATION|TIME")]
    pub(super) ended_until: Option<String>,
    #[command(flatten)]
    pub(super) zone: PastZone,
    /// Only jobs that ran last on this actor: TYPE:GROUP:INSTANCE
    #[arg(long, value_name = "ACTOR")]
    pub(super) actor: Option<String>,
    /// Only jobs that ran last, and ended, on this machine
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// Only jobs of this queue, as hero queue list prints it: type:bash:group:gpu, with :prio:0 or :prio:2 at its end for
    /// urgent jobs and those in the background
    #[arg(long, value_name = "QUEUE")]
    pub(super) queue: Option<String>,
    /// Only jobs of this caller
    #[arg(long, value_name = "TEXT")]
    pub(super) caller: Option<String>,
    /// Only jobs whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(super) name: Option<String>,
    /// Only jobs with this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub(super) tags: Vec<String>,
    /// Only jobs whose error contains this text
    #[arg(long, value_name = "TEXT")]
    pub(super) error: Option<String>,
    /// Only jobs whose error is of this kind: as hero job errors prints it, or an error of the kind
    #[arg(long, value_name = "TEXT")]
    pub(super) kind: Option<String>,
    /// Only jobs that failed because of this: timeout, expired, prerequisite, crashed, invalid, `signature_expired`, unsigned
    /// or script; or that ended because they were stopped or replaced: stopped, replaced
    #[arg(long, value_name = "WORD")]
    pub(super) failed_because: Option<String>,
    /// Only jobs that were stopped or replaced
    #[arg(long)]
    pub(super) cancelled: bool,
    /// Only jobs that the script of this job submitted
    #[arg(long, value_name = "ID")]
    pub(super) parent: Option<String>,
    /// Only jobs that did not end within their --expect-within
    #[arg(long)]
    pub(super) late: bool,
    /// Only jobs that a limit holds
    #[arg(long)]
    pub(super) held: bool,
    /// Only jobs whose id begins with this text, or whose name, tags or error contain it
    #[arg(long, value_name = "TEXT")]
    pub(super) text: Option<String>,
    /// Only dead letters: jobs that used up their attempts
    #[arg(long)]
    pub(super) dead: bool,
}

/// States of jobs, by the words of people or of the hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli) struct States {
    /// The states of the hash.
    pub(in crate::cli) stored: Vec<JobStatus>,
    /// Of the jobs in error, only those with one of these ends. Empty for all.
    pub(in crate::cli) ends: Vec<JobEnd>,
}

impl States {
    /// Reads words; none means any state.
    pub(in crate::cli) fn of_words<'a>(
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let (mut states, mut any_error) = (Self::default(), false);
        for word in words {
            let ends = ends_of(word);
            let stored = match word {
                _ if !ends.is_empty() => vec![JobStatus::Error],
                "waiting" => JobStatus::ALL.into_iter().filter(|it| it.is_waiting()).collect(),
                "running" => vec![JobStatus::Started],
                other => vec![other.parse().map_err(|_| unknown_state(other))?],
            };
            any_error |= ends.is_empty() && stored.contains(&JobStatus::Error);
            states.ends.extend(ends);
            for state in stored {
                if !states.stored.contains(&state) {
                    states.stored.push(state);
                }
            }
        }
        if any_error {
            states.ends.clear();
        }
        Ok(states)
    }
}

/// Returns the ends in error that a word means: a job that expired has failed too.
fn ends_of(word: &str) -> Vec<JobEnd> {
    match word {
        "failed" => JobEnd::FAILURES.to_vec(),
        _ => JobEnd::IN_ERROR.into_iter().filter(|end| end.as_str() == word).collect(),
    }
}

fn unknown_state(word: &str) -> Error {
    let message = format!(
        "--status: unknown state `{}`: expected waiting, running, finished, failed, cancelled, replaced or expired, \
         or a state as JSON has it: created, waiting_for_prerequisites, scheduled, dispatched, started, error",
        shown(word)
    );
    Error::new(Exit::Data, message)
}

impl JobFilters {
    /// Returns true if any filter is given.
    pub(super) fn is_given(&self) -> bool {
        self.texts().iter().any(|(_, text)| text.is_some())
            || self.queue.is_some()
            || !(self.tags.is_empty() && self.status.is_empty())
            || self.cancelled
            || self.late
            || self.held
            || self.dead
    }

    fn texts(&self) -> [(&'static str, Option<&String>); 14] {
        [
            ("--caller", self.caller.as_ref()),
            ("--name", self.name.as_ref()),
            ("--error", self.error.as_ref()),
            ("--text", self.text.as_ref()),
            ("--kind", self.kind.as_ref()),
            ("--failed-because", self.failed_because.as_ref()),
            ("--since", self.since.as_ref()),
            ("--until", self.until.as_ref()),
            ("--ended-since", self.ended_since.as_ref()),
            ("--ended-until", self.ended_until.as_ref()),
            ("--actor", self.actor.as_ref()),
            ("--host", self.host.as_ref()),
            ("--parent", self.parent.as_ref()),
            ("--type", self.script_type.as_ref()),
        ]
    }

    /// Counts the jobs that were found.
    pub(super) fn counted(&self, number: usize) -> String {
        let words = if self.dead { ("dead letter", "dead letters") } else { ("job", "jobs") };
        counted(number as u64, words.0, words.1)
    }

    /// Returns the states that are asked for.
    pub(super) fn states(&self) -> Result<States, Error> {
        States::of_words(self.status.iter().map(String::as_str))
    }

    /// Returns the query by what indexes have.
    pub(super) fn query(&self, limit: usize) -> Result<ListQuery, Error> {
        let states = self.states()?;
        Ok(ListQuery {
            statuses: states.stored,
            ends: states.ends,
            script_type: self.script_type.as_deref().map(parsed).transpose()?,
            dead: self.dead,
            limit,
            ..ListQuery::default()
        })
    }

    /// Returns the search by what no index has. `now` is the time of Redis.
    pub(super) fn search(&self, now: Timestamp) -> Result<JobSearch, Error> {
        let time =
            |option: &str, text: &Option<String>| self.zone.read_given(option, text.as_ref(), now);
        Ok(JobSearch {
            caller: self.caller.clone(),
            name: self.name.clone(),
            tags: self.tags.clone(),
            error: self.error.clone(),
            error_kind: self.kind.as_deref().map(ErrorKindFilter::new),
            cause: self.failed_because.as_deref().map(parsed).transpose()?,
            cancelled: self.cancelled.then_some(true),
            late: self.late.then_some(true),
            held: self.held.then_some(true),
            text: self.text.clone(),
            since: time("--since", &self.since)?,
            until: time("--until", &self.until)?,
            ended_since: time("--ended-since", &self.ended_since)?,
            ended_until: time("--ended-until", &self.ended_until)?,
            actor: self.actor.clone(),
            host: self.host.clone(),
            parent: self.parent.as_deref().map(parsed).transpose()?,
            queue: self.queue.as_deref().map(parsed).transpose()?,
        })
    }

    /// Returns the options as a command line has them.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        let tags = self.tags.iter().map(|tag| ("--tag", tag.as_str()));
        let states = self.status.iter().map(|state| ("--status", state.as_str()));
        let texts = self.texts().into_iter();
        let given = texts.filter_map(|(option, text)| Some((option, text?.as_str())));
        let given = given.chain(self.zone.name().map(|name| ("--timezone", name)));
        let given = given.chain(self.queue.as_deref().map(|queue| ("--queue", queue)));
        for (option, text) in given.chain(states).chain(tags) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:+/".contains(c);
            let is_plain = !text.is_empty() && text.chars().all(is_plain);
            let text = if is_plain { text.to_owned() } else { quoted(text) };
            let _ = write!(words, " {option} {text}");
        }
        let flags = [
            (self.cancelled, " --cancelled"),
            (self.late, " --late"),
            (self.held, " --held"),
            (self.dead, " --dead"),
        ];
        for (given, option) in flags {
            words.push_str(if given { option } else { "" });
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
            status: vec!["error".to_owned()],
            error: Some("can't".to_owned()),
            cancelled: true,
            dead: true,
            ..JobFilters::default()
        };
        assert_eq!(filter.words(), r" --error 'can'\''t' --status error --cancelled --dead");
        assert!(filter.is_given() && !JobFilters::default().is_given());
    }

    #[test]
    fn states_have_the_words_of_people_and_those_of_the_hash() {
        use JobStatus::{Created, Dispatched, Error, Finished, Scheduled, Started};
        let of = |words: &[&str]| States::of_words(words.iter().copied());
        let waiting = vec![Created, JobStatus::WaitingForPrerequisites, Scheduled, Dispatched];
        for (words, stored) in [
            (&["waiting"][..], waiting),
            (&["running", "Started"][..], vec![Started]),
            (&["scheduled", "dispatched"][..], vec![Scheduled, Dispatched]),
            (&["failed", "finished"][..], vec![Error, Finished]),
            (&["cancelled", "finished"][..], vec![Error, Finished]),
            (&[][..], vec![]),
        ] {
            assert_eq!(of(words).expect("legal").stored, stored, "{words:?}");
        }
        let ends = |words: &[&str]| of(words).expect("legal").ends;
        assert_eq!(ends(&["failed"]), JobEnd::FAILURES);
        assert_eq!(ends(&["replaced", "cancelled"]), [JobEnd::Replaced, JobEnd::Cancelled]);
        assert_eq!(ends(&["expired", "finished"]), [JobEnd::Expired]);
        assert!(ends(&["error", "failed"]).is_empty() && ends(&[]).is_empty());
        let wrong = of(&["done"]).expect_err("no state").message;
        assert!(
            wrong.contains("waiting, running, finished, failed, cancelled, replaced or expired"),
            "{wrong}"
        );
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
