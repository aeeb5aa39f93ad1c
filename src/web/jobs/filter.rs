//! The filters of the list of jobs, as the address has them.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::super::links::SiteLinks;
use super::super::parts::{ShownState, given};
use super::super::web_error::{PageError, PageResult};
use crate::proto::error_kind::ErrorKindFilter;
use crate::proto::job::JobEnd;
use crate::proto::spoken_time::parse_past_time;
use crate::proto::text::shown;
use crate::store::{JobSearch, ListQuery};

/// The number of rows of a page without a choice.
const SIZE: usize = 25;
/// The largest number of rows of a page.
const SIZE_MAX: usize = 100;

/// The ages that the form offers.
pub(super) const AGES: [(&str, &str); 7] = [
    ("", "any time"),
    ("15m", "last 15 min"),
    ("1h", "last hour"),
    ("24h", "last 24 h"),
    ("today", "today, UTC"),
    (YESTERDAY, "yesterday, UTC"),
    ("7d", "last 7 days"),
];

/// The word for the whole day before, in UTC.
const YESTERDAY: &str = "yesterday";

/// The filters. An empty one filters nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::web) struct JobFilter {
    /// The state, by its class.
    pub(super) state: String,
    /// The start of an id, or a part of the name, of the tags or of the error.
    pub(super) q: String,
    /// The script type.
    #[serde(rename = "type")]
    pub(super) script_type: String,
    pub(super) queue: String,
    pub(super) caller: String,
    pub(super) tag: String,
    /// Created since: an age such as `1h`, a time, or `yesterday`, which without an end means that whole day.
    pub(super) since: String,
    /// Created until: the same.
    pub(super) until: String,
    /// Ended since: the same.
    pub(super) ended_since: String,
    /// Ended until: the same.
    pub(super) ended_until: String,
    /// The actor of the last attempt.
    pub(super) actor: String,
    /// The machine of the last attempt.
    pub(super) host: String,
    /// The job whose script submitted them.
    pub(super) parent: String,
    /// The kind of the error, as failures are grouped.
    pub(super) kind: String,
    /// A part of the name.
    pub(super) name: String,
    /// A part of the error.
    pub(super) error: String,
    /// Why it failed, as `hero job list` has it.
    pub(super) failed_because: String,
    /// `true` or `false`: only jobs that were late, or only others; the same for `held` and `cancelled`.
    pub(super) late: String,
    pub(super) held: String,
    pub(super) cancelled: String,
    /// Any text but `0`, `false` and `no`: only dead letters.
    pub(super) dead: String,
    /// `error` groups failures by their errors.
    pub(super) by: String,
    pub(super) limit: String,
    pub(super) cursor: String,
}

impl JobFilter {
    /// Returns the state; `None` for all.
    pub(super) fn state(&self) -> Option<ShownState> {
        ShownState::parse(self.state.trim())
    }

    fn asked_state(&self) -> PageResult<Option<ShownState>> {
        let (text, state) = (self.state.trim(), self.state());
        if state.is_some() || text.is_empty() {
            return Ok(state);
        }
        let words = ShownState::ALL.map(ShownState::as_str).join(", ");
        let reason = format!("state `{}` is not legal: {words}, or failed for error", shown(text));
        Err(wrong("state", &reason))
    }

    /// Returns the same filters for dead letters alone.
    pub(super) fn of_dead(self) -> Self {
        Self { dead: "1".to_owned(), state: String::new(), ..self }
    }

    /// Returns true if it finds dead letters alone.
    pub(super) fn is_of_dead(&self) -> bool {
        !["", "0", "false", "no"].contains(&self.dead.trim())
    }

    /// Returns the word for one of the list.
    pub(super) fn noun(&self) -> &'static str {
        if self.is_of_dead() { "dead letter" } else { "job" }
    }

    /// Returns the path of the list. Dead letters have a path of their own.
    pub(super) fn path(&self) -> &'static str {
        if self.is_of_dead() { "/dead" } else { "/jobs" }
    }

    /// Returns the number of rows of a page.
    ///
    /// # Errors
    /// [`PageError`] if the limit is none of a page.
    pub(super) fn size(&self) -> PageResult<usize> {
        Ok(self.most(SIZE_MAX)?.unwrap_or(SIZE))
    }

    /// Returns the number of jobs that its limit asks for.
    ///
    /// # Errors
    /// [`PageError`] if it is no number from 1 to `most`.
    pub(super) fn most(&self, most: usize) -> PageResult<Option<usize>> {
        let text = self.limit.trim();
        match text.parse::<usize>() {
            _ if text.is_empty() => Ok(None),
            Ok(limit) if (1..=most).contains(&limit) => Ok(Some(limit)),
            _ => {
                let reason = format!("`{}` is not legal: a number from 1 to {most}", shown(text));
                Err(wrong("limit", &reason))
            }
        }
    }

    /// Returns true if the first page of it costs little: most jobs that are read are shown.
    pub(super) fn is_plain(&self) -> bool {
        let is_plain = |(name, _): &(&str, &str)| ["state", "type"].contains(name);
        self.fields().iter().all(is_plain)
    }

    /// Returns its filters, without the place in the list.
    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        self.all()
            .into_iter()
            .map(|(name, value)| (name, value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }

    fn all(&self) -> [(&'static str, &str); 21] {
        [
            ("state", &self.state),
            ("q", &self.q),
            ("type", &self.script_type),
            ("queue", &self.queue),
            ("caller", &self.caller),
            ("tag", &self.tag),
            ("since", &self.since),
            ("until", &self.until),
            ("ended_since", &self.ended_since),
            ("ended_until", &self.ended_until),
            ("actor", &self.actor),
            ("host", &self.host),
            ("parent", &self.parent),
            ("kind", &self.kind),
            ("name", &self.name),
            ("error", &self.error),
            ("failed_because", &self.failed_because),
            ("late", &self.late),
            ("held", &self.held),
            ("cancelled", &self.cancelled),
            ("dead", &self.dead),
        ]
    }

    /// Returns the address of a page with these filters and more.
    pub(super) fn address(&self, links: &SiteLinks, path: &str, more: &[(&str, &str)]) -> String {
        let mut query = self.fields();
        query.retain(|(name, _)| !(*name == "dead" && path == self.path()));
        if path == self.path() {
            // A file has all jobs.
            query.push(("limit", &self.limit));
        }
        query.extend(more);
        links.with(path, &query)
    }

    /// Returns the query and the search that these filters mean.
    ///
    /// # Errors
    /// [`PageError`] for a text that is no value of its filter.
    pub(super) fn search(&self, now: Timestamp) -> PageResult<(ListQuery, JobSearch)> {
        let state = self.asked_state()?;
        if !["", "error"].contains(&self.by.as_str()) {
            let reason = format!("`{}` is not legal: error", shown(&self.by));
            return Err(wrong("by", &reason));
        }
        let query = ListQuery {
            statuses: state.map(ShownState::stored).into_iter().collect(),
            ends: match state {
                Some(ShownState::Error) => JobEnd::FAILURES.to_vec(),
                Some(ShownState::Cancelled) => vec![JobEnd::Cancelled, JobEnd::Replaced],
                _ => Vec::new(),
            },
            script_type: parsed("type", &self.script_type)?,
            dead: self.is_of_dead(),
            cursor: parsed("cursor", &self.cursor)?,
            budget: Some(ListQuery::BUDGET),
            ..ListQuery::default()
        };
        let given = |text: &str| given(text.trim()).map(str::to_owned);
        let created = [("since", &*self.since), ("until", &*self.until)];
        let ended = [("ended_since", &*self.ended_since), ("ended_until", &*self.ended_until)];
        let ([since, until], [ended_since, ended_until]) = (span(created, now)?, span(ended, now)?);
        let search = JobSearch {
            text: given(&self.q),
            caller: given(&self.caller),
            tags: given(&self.tag).into_iter().collect(),
            error_kind: given(&self.kind).as_deref().map(ErrorKindFilter::new),
            actor: given(&self.actor),
            host: given(&self.host),
            parent: parsed("parent", &self.parent)?,
            queue: parsed("queue", &self.queue)?,
            name: given(&self.name),
            error: given(&self.error),
            cause: parsed("failed_because", &self.failed_because)?,
            late: flag("late", &self.late)?,
            cancelled: flag("cancelled", &self.cancelled)?,
            // Two states are one in the hash.
            held: match state {
                Some(ShownState::Held) => Some(true),
                Some(ShownState::Queued) => Some(false),
                _ => flag("held", &self.held)?,
            },
            since,
            until,
            ended_since,
            ended_until,
        };
        Ok((query, search))
    }
}

/// Returns the error of the value of a filter.
fn wrong(name: &str, reason: &impl Display) -> PageError {
    PageError::of_parameter(name, format!("the filter {name} is wrong: {reason}"))
}

/// Parses the text of a filter; an empty one filters nothing.
fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> PageResult<Option<T>> {
    let parse = |text: &str| text.parse::<T>().map_err(|error| wrong(name, &error));
    given(text.trim()).map(parse).transpose()
}

/// Parses a filter that is on, off, or not given.
fn flag(name: &str, text: &str) -> PageResult<Option<bool>> {
    match text.trim() {
        "" => Ok(None),
        "true" | "1" | "yes" => Ok(Some(true)),
        "false" | "0" | "no" => Ok(Some(false)),
        other => Err(wrong(name, &format!("`{}` is not legal: true or false", shown(other)))),
    }
}

/// Returns the start and the end of two filters with their texts. `yesterday` alone is that whole day.
fn span(
    [(of_since, since), (of_until, until)]: [(&str, &str); 2],
    now: Timestamp,
) -> PageResult<[Option<Timestamp>; 2]> {
    let is_day = since.trim() == YESTERDAY && until.trim().is_empty();
    let until = if is_day { "today" } else { until };
    Ok([moment(of_since, since, now)?, moment(of_until, until, now)?])
}

/// Returns the time of a filter, as `hero job list` reads it, in UTC.
fn moment(name: &str, text: &str, now: Timestamp) -> PageResult<Option<Timestamp>> {
    let parse = |text: &str| parse_past_time(text, &TimeZone::UTC, now);
    let parsed = given(text.trim()).map(parse).transpose();
    parsed.map_err(|error| wrong(name, &error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proto::error_kind::FailureCause;
    use crate::proto::job::JobStatus;

    fn now() -> Timestamp {
        "2026-01-31T13:00:00Z".parse().expect("a time")
    }

    #[test]
    fn filters_become_a_search() {
        let filter = |name: &str, value: &str| -> JobFilter {
            serde_json::from_value(json!({ name: value })).expect("a filter")
        };
        let of = |name: &str, value: &str| filter(name, value).search(now());
        let (query, search) = of("state", "held").expect("a search");
        assert_eq!((query.statuses, search.held), (vec![JobStatus::Dispatched], Some(true)));
        let (query, _) = of("state", "error").expect("a search");
        assert_eq!(query.ends, JobEnd::FAILURES);
        let (_, search) = of("since", "1h").expect("a search");
        assert_eq!(search.since, "2026-01-31T12:00:00Z".parse().ok());
        let (_, search) = of("ended_since", "yesterday").expect("a search");
        let day = |text: &str| text.parse::<Timestamp>().ok();
        assert_eq!(
            (search.ended_since, search.ended_until, search.since),
            (day("2026-01-30T00:00:00Z"), day("2026-01-31T00:00:00Z"), None)
        );
        let (failed, _) = of("state", "Failed").expect("a search");
        assert_eq!((failed.statuses, failed.ends), (vec![JobStatus::Error], query.ends));
        for (name, value, reason) in [
            ("state", "nosuch", "state `nosuch` is not legal: created, waiting, "),
            ("since", "banana", "`banana` is not a time: expected a duration ago"),
            ("until", "<b>", "`<b>` is not a time"),
            ("ended_since", "1x", "`1x` is not a time"),
            ("ended_until", "-1h", "`-1h` is not a time"),
            ("type", "<b>", "script type `<b>` is not legal: a lower-case letter"),
            ("queue", "none", "queue `none` is not legal: type:T"),
            ("parent", "a:b", "`a:b` is not legal"),
            ("cursor", "x", "`x` is not legal"),
            ("by", "name", "`name` is not legal: error"),
            ("late", "maybe", "`maybe` is not legal: true or false"),
            ("failed_because", "luck", "`luck` is not legal"),
        ] {
            let error = of(name, value).expect_err("no value of the filter");
            let start = format!("the filter {name} is wrong: ");
            assert!(error.text.starts_with(&start) && error.text.contains(reason), "{error:?}");
        }
        assert!(of("dead", "1").expect("a search").0.dead);
        let set = |name: &str, value: &str| of(name, value).expect("a search").1;
        assert_eq!(set("name", "import").name.as_deref(), Some("import"));
        assert_eq!(set("error", "boom").error.as_deref(), Some("boom"));
        assert_eq!(set("failed_because", "timeout").cause, Some(FailureCause::Timeout));
        assert_eq!(
            (set("late", "true").late, set("held", "false").held),
            (Some(true), Some(false))
        );
        assert!(!of("dead", "false").expect("a search").0.dead);
    }

    #[test]
    fn limit_is_obeyed_or_refused() {
        let of = |limit: &str| JobFilter { limit: limit.to_owned(), ..JobFilter::default() };
        assert_eq!((of("").size(), of(" 2 ").size(), of("100").size()), (Ok(25), Ok(2), Ok(100)));
        assert_eq!((of("").most(10), of("10").most(10)), (Ok(None), Ok(Some(10))));
        for limit in ["0", "101", "-1", "x", "1e1", "18446744073709551616"] {
            let error = of(limit).size().expect_err("no size of a page");
            assert!(error.text.ends_with("is not legal: a number from 1 to 100"), "{error:?}");
        }
    }

    #[test]
    fn address_keeps_filters_and_drops_the_place() {
        let filter = JobFilter {
            state: "error".into(),
            q: " a&b ".into(),
            cursor: "x".into(),
            limit: "50".into(),
            ..JobFilter::default()
        };
        let address = filter.address(&SiteLinks::new("/"), "/jobs", &[("cursor", "y")]);
        assert_eq!(address, "/jobs?state=error&q=a%26b&limit=50&cursor=y");
        assert!(!filter.is_plain() && JobFilter::default().is_plain());
        let dead = filter.of_dead();
        assert_eq!(dead.address(&SiteLinks::new("/"), dead.path(), &[]), "/dead?q=a%26b&limit=50");
        let file = dead.address(&SiteLinks::new("/"), "/jobs.csv", &[]);
        assert_eq!(file, "/jobs.csv?q=a%26b&dead=1");
    }

    #[test]
    fn hostile_texts_are_no_moments() {
        assert_eq!(moment("since", " ", now()), Ok(None));
        for text in ["é", "99999999999999999999d", "-1h", "18446744073709551615d"] {
            assert!(moment("since", text, now()).is_err(), "{text}");
        }
    }
}
