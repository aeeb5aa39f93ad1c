//! The filters of the list of jobs, as the address has them.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::super::links::SiteLinks;
use super::super::parts::{ShownState, given};
use super::super::web_error::{PageError, PageResult};
use crate::proto::error_kind::ErrorKindFilter;
use crate::proto::spoken_time::parse_past_time;
use crate::proto::text::shown;
use crate::store::{JobSearch, ListQuery};

/// The sizes of a page that a visitor may choose; the first is the default.
const SIZES: [usize; 3] = [25, 50, 100];

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
    /// Any text: only dead letters.
    pub(super) dead: String,
    /// `error` groups failures by their errors.
    pub(super) by: String,
    pub(super) limit: String,
    pub(super) cursor: String,
}

impl JobFilter {
    /// Returns the state; `None` for all.
    pub(super) fn state(&self) -> Option<ShownState> {
        self.state.parse().ok()
    }

    /// Returns the same filters for dead letters alone.
    pub(super) fn of_dead(self) -> Self {
        Self { dead: "1".to_owned(), state: String::new(), ..self }
    }

    /// Returns true if it finds dead letters alone.
    pub(super) fn is_of_dead(&self) -> bool {
        !self.dead.is_empty()
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
    pub(super) fn size(&self) -> usize {
        let asked = self.limit.parse().unwrap_or(SIZES[0]);
        if SIZES.contains(&asked) { asked } else { SIZES[0] }
    }

    /// Returns true if the first page of it costs little: most jobs that are read are shown.
    pub(super) fn is_plain(&self) -> bool {
        let is_rare = self.is_of_dead() || self.state() == Some(ShownState::Cancelled);
        let is_plain = |(name, _): &(&str, &str)| ["state", "type"].contains(name);
        self.fields().iter().all(is_plain) && !is_rare
    }

    /// Checks the parameters of an address from which a file is made: with a misspelled filter it would have all jobs.
    ///
    /// # Errors
    /// [`PageError`] names the first that is no filter.
    pub(super) fn check_names(query: Option<&str>) -> PageResult<()> {
        let names = query.unwrap_or_default().split('&').filter_map(|pair| pair.split('=').next());
        let known = Self::default().all().map(|(name, _)| name);
        // The place and the size of a page, which a file has not, come with the link from a list.
        let is_known =
            |name: &str| known.contains(&name) || ["", "limit", "cursor", "by"].contains(&name);
        match names.into_iter().find(|name| !is_known(name)) {
            Some(name) => Err(PageError::wrong(format!(
                "no filter {}: there are {}",
                shown(name),
                known.join(", ")
            ))),
            None => Ok(()),
        }
    }

    /// Returns its filters, without the place in the list.
    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        self.all()
            .into_iter()
            .map(|(name, value)| (name, value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }

    fn all(&self) -> [(&'static str, &str); 15] {
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
            ("dead", &self.dead),
        ]
    }

    /// Returns the address of a page with these filters and more.
    pub(super) fn address(&self, links: &SiteLinks, path: &str, more: &[(&str, &str)]) -> String {
        let mut query = self.fields();
        query.retain(|(name, _)| !(*name == "dead" && path == self.path()));
        query.push(("limit", &self.limit));
        query.extend(more);
        links.with(path, &query)
    }

    /// Returns the query and the search that these filters mean.
    ///
    /// # Errors
    /// [`PageError`] for a text that is no value of its filter.
    pub(super) fn search(&self, now: Timestamp) -> PageResult<(ListQuery, JobSearch)> {
        let state = self.state();
        let query = ListQuery {
            statuses: state.map(ShownState::stored).into_iter().collect(),
            script_type: parsed("script type", &self.script_type)?,
            dead: self.is_of_dead(),
            cursor: parsed("place in the list", &self.cursor)?,
            ..ListQuery::default()
        };
        let given = |text: &str| given(text.trim()).map(str::to_owned);
        // Two states are one in the hash.
        let one_of = |yes, no| state.filter(|of| [yes, no].contains(of)).map(|of| of == yes);
        let (since, until) = span(&self.since, &self.until, now);
        let (ended_since, ended_until) = span(&self.ended_since, &self.ended_until, now);
        let search = JobSearch {
            text: given(&self.q),
            caller: given(&self.caller),
            tags: given(&self.tag).into_iter().collect(),
            error_kind: given(&self.kind).as_deref().map(ErrorKindFilter::new),
            actor: given(&self.actor),
            host: given(&self.host),
            parent: parsed("job", &self.parent)?,
            queue: parsed("queue", &self.queue)?,
            held: one_of(ShownState::Held, ShownState::Queued),
            cancelled: one_of(ShownState::Cancelled, ShownState::Error),
            since,
            until,
            ended_since,
            ended_until,
            ..JobSearch::default()
        };
        Ok((query, search))
    }
}

/// Parses the text of a filter; an empty one filters nothing.
fn parsed<T: FromStr>(what: &str, text: &str) -> PageResult<Option<T>> {
    let text = text.trim();
    let wrong =
        |_| PageError::wrong(format!("No {what} has the name {text:?}. Clear this filter."));
    given(text).map(|text| text.parse().map_err(wrong)).transpose()
}

/// Returns the start and the end of two texts. `yesterday` alone is that whole day.
fn span(since: &str, until: &str, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
    let is_day = since.trim() == YESTERDAY && until.trim().is_empty();
    let until = if is_day { "today" } else { until };
    (moment(since, now), moment(until, now))
}

/// Returns the time of a text, as `hero job list` reads it, in UTC.
fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    parse_past_time(text.trim(), &TimeZone::UTC, now).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
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
        let (query, search) = of("state", "error").expect("a search");
        assert_eq!((query.statuses, search.cancelled), (vec![JobStatus::Error], Some(false)));
        let (_, search) = of("since", "1h").expect("a search");
        assert_eq!(search.since, "2026-01-31T12:00:00Z".parse().ok());
        let (_, search) = of("ended_since", "yesterday").expect("a search");
        let day = |text: &str| text.parse::<Timestamp>().ok();
        assert_eq!(
            (search.ended_since, search.ended_until, search.since),
            (day("2026-01-30T00:00:00Z"), day("2026-01-31T00:00:00Z"), None)
        );
        assert!(!of("since", "nonsense").expect("a search").1.is_wanted());
        for (name, value) in [("type", "<b>"), ("queue", "none"), ("cursor", "x")] {
            assert!(of(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn address_keeps_filters_and_drops_the_place() {
        let filter = JobFilter {
            state: "error".into(),
            q: " a&b ".into(),
            cursor: "x".into(),
            ..JobFilter::default()
        };
        let address = filter.address(&SiteLinks::new("/"), "/jobs", &[("cursor", "y")]);
        assert_eq!(address, "/jobs?state=error&q=a%26b&cursor=y");
        assert!(!filter.is_plain() && JobFilter::default().is_plain());
        let dead = filter.of_dead();
        assert_eq!(dead.address(&SiteLinks::new("/"), dead.path(), &[]), "/dead?q=a%26b");
        let file = dead.address(&SiteLinks::new("/"), "/jobs.csv", &[]);
        assert_eq!(file, "/jobs.csv?q=a%26b&dead=1");
    }

    #[test]
    fn hostile_texts_are_no_moments() {
        for text in ["", "é", "99999999999999999999d", "-1h", "18446744073709551615d"] {
            assert_eq!(moment(text, now()), None, "{text}");
        }
    }
}
