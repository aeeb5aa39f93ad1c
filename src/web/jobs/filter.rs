//! The filters of the list of jobs, as the address has them, and what they find.

use std::fmt::Display;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::super::doc::JobDoc;
use super::super::parts::ShownState;
use super::super::prelude::*;
use crate::proto::job_filter::{FilterTest, Filtered, JobFilter};
use crate::proto::target::IllegalName;
use crate::proto::text::shown;
use crate::store::{JobSearch, ListQuery};

/// The number of rows of a page without a choice.
const SIZE: usize = 25;
/// The numbers of rows that the page offers.
pub(super) const SIZES: [usize; 3] = [SIZE, 100, SIZE_MAX];
const SIZE_MAX: usize = 500;

/// The ages that the form offers.
pub(super) const AGES: [(&str, &str); 7] = [
    ("", "any time"),
    ("15m", "last 15 min"),
    ("1h", "last hour"),
    ("24h", "last 24 h"),
    ("today", "today, UTC"),
    ("yesterday", "since yesterday, UTC"),
    ("7d", "last 7 days"),
];

/// The list of jobs that an address asks for. An empty filter filters nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Filtered<PagePlace>")]
pub(in crate::web) struct JobsQuery {
    pub(super) filter: JobFilter,
    pub(super) place: PagePlace,
}

/// The place in the list, and its form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct PagePlace {
    /// `error` groups failures by their errors.
    pub(super) by: String,
    pub(super) limit: String,
    pub(super) cursor: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct JobListPage {
    pub(super) jobs: Vec<JobDoc>,
    /// The cursor of the next page, if there may be one.
    pub(super) next: Option<String>,
    /// The number of jobs that were searched, without those that the visitor may not see.
    pub(super) searched: usize,
    /// True if there are no others.
    pub(super) complete: bool,
    /// The time back to which jobs were searched, unless all were.
    pub(super) back_to: Option<Timestamp>,
}

impl From<Filtered<PagePlace>> for JobsQuery {
    fn from(Filtered { filter, rest }: Filtered<PagePlace>) -> Self {
        Self { filter: filter.trimmed(), place: rest }
    }
}

impl JobsQuery {
    /// Returns the state, if it is one of those that the page shows.
    pub(super) fn state(&self) -> Option<ShownState> {
        let mut values = self.filter.values().filter(|(row, _)| row.test == FilterTest::Status);
        let (_, value) = values.next()?;
        ShownState::asked_by(value).filter(|_| values.next().is_none())
    }

    /// Returns true if it finds all jobs, or all in a state that the page counts.
    pub(super) fn is_whole(&self) -> bool {
        let has_status = self.filter.value("status").is_some();
        self.filter.values().all(|(row, _)| row.test == FilterTest::Status)
            && has_status == self.state().is_some()
    }

    /// Returns the first page of the same list with a filter more, or with another value of it.
    pub(super) fn with(&self, name: &str, value: &str) -> Self {
        let filter = self.filter.clone().with(name, value).trimmed();
        Self { filter, place: PagePlace { cursor: String::new(), ..self.place.clone() } }
    }

    /// Returns the same filters for dead letters alone.
    pub(super) fn of_dead(self) -> Self {
        Self { filter: self.filter.without("status").with("dead", "true"), ..self }
    }

    pub(super) fn is_of_dead(&self) -> bool {
        self.filter.is_of_dead()
    }

    pub(super) fn noun(&self) -> &'static str {
        self.filter.noun()
    }

    /// Returns the path of the list. Dead letters have a path of their own.
    pub(super) fn path(&self) -> &'static str {
        if self.is_of_dead() { "/dead" } else { "/jobs" }
    }

    /// Returns the number of rows of a page.
    pub(super) fn size(&self) -> PageResult<usize> {
        Ok(self.most(SIZE_MAX)?.unwrap_or(SIZE))
    }

    /// Returns the same list with so many rows on a page, from its start.
    pub(super) fn sized(&self, rows: usize) -> Self {
        let (limit, cursor) = (rows.to_string(), String::new());
        Self { place: PagePlace { limit, cursor, ..self.place.clone() }, ..self.clone() }
    }

    /// Returns the number of jobs that its limit asks for.
    pub(super) fn most(&self, most: usize) -> PageResult<Option<usize>> {
        let text = self.place.limit.trim();
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
        let mut rows = self.filter.values().map(|(row, _)| row.test);
        rows.all(|test| matches!(test, FilterTest::Status | FilterTest::ScriptType))
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        self.filter.values().map(|(row, value)| (row.name, value)).collect()
    }

    /// Returns the address of a page with these filters and more.
    pub(super) fn address(&self, links: &SiteLinks, path: &str, more: &[(&str, &str)]) -> String {
        let mut query = self.fields();
        query.retain(|(name, _)| !(*name == "dead" && path == self.path()));
        if path == self.path() {
            // A file has all jobs.
            query.push(("limit", &self.place.limit));
        }
        query.extend(more);
        links.with(path, &query)
    }

    /// Finds `wanted` jobs, or all that a search finds in its time.
    pub(super) async fn find(
        &self,
        visit: &Visit,
        now: Timestamp,
        wanted: usize,
    ) -> PageResult<JobListPage> {
        let (mut query, search) = self.search(now)?;
        let search = search.seeing_all(!visit.is_bound());
        query.limit = wanted;
        let _place = visit.may_search().await?;
        let found =
            visit.site.client.jobs().find_many(&query, &search, |job| visit.sees(job)).await?;
        Ok(JobListPage {
            jobs: found.items.iter().map(JobDoc::from).collect(),
            next: found.next.as_ref().map(ToString::to_string),
            searched: found.searched,
            complete: found.complete,
            back_to: found.back_to(),
        })
    }

    /// Returns the query and the search that these filters mean.
    pub(super) fn search(&self, now: Timestamp) -> PageResult<(ListQuery, JobSearch)> {
        let PagePlace { by, cursor, .. } = &self.place;
        if !["", "error"].contains(&by.as_str()) {
            return Err(wrong("by", &format!("`{}` is not legal: error", shown(by))));
        }
        let cursor = cursor.trim();
        let cursor = (!cursor.is_empty()).then(|| cursor.parse()).transpose();
        let cursor = cursor.map_err(|error: IllegalName| wrong("cursor", &error))?;
        let found = JobSearch::of(&self.filter, &TimeZone::UTC, now);
        let (query, search) = found.map_err(|error| wrong(error.row.name, &error.reason))?;
        Ok((ListQuery { cursor, budget: Some(ListQuery::BUDGET), ..query }, search))
    }
}

fn wrong(name: &str, reason: &impl Display) -> PageError {
    PageError::of_parameter(name, format!("the filter {name} is wrong: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::{JobEnd, JobStatus};

    fn list(values: &[(&str, &str)]) -> JobsQuery {
        JobsQuery { filter: JobFilter::of(values.iter().copied()), place: PagePlace::default() }
    }

    #[test]
    fn each_state_of_the_page_is_found_by_its_own_words() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        for state in ShownState::ALL {
            let list = list(&[("status", state.asked())]);
            assert_eq!(list.state(), Some(state));
            assert_eq!(list.search(now).expect("a search").0.statuses, [state.stored()]);
        }
        let failed = list(&[("status", "Failed")]);
        let (query, _) = failed.search(now).expect("a search");
        assert_eq!(
            (query.statuses, failed.state()),
            (vec![JobStatus::Error], Some(ShownState::Error))
        );
        assert_eq!(query.ends, JobEnd::FAILURES);
    }

    #[test]
    fn illegal_value_is_refused_with_its_parameter() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let refused = |list: &JobsQuery| list.search(now).expect_err("no value of it").text;
        let since = refused(&list(&[("since", "<b>")]));
        assert!(since.starts_with("the filter since is wrong: `<b>` is not a time"), "{since}");
        let place = PagePlace { cursor: "x".into(), ..PagePlace::default() };
        let cursor = refused(&JobsQuery { place, ..JobsQuery::default() });
        assert!(cursor.starts_with("the filter cursor is wrong: "), "{cursor}");
        let place = PagePlace { by: "name".into(), ..PagePlace::default() };
        let by = refused(&JobsQuery { place, ..JobsQuery::default() });
        assert_eq!(by, "the filter by is wrong: `name` is not legal: error");
    }

    #[test]
    fn limit_is_obeyed_or_refused() {
        let of = |limit: &str| {
            let place = PagePlace { limit: limit.to_owned(), ..PagePlace::default() };
            JobsQuery { place, ..JobsQuery::default() }
        };
        assert_eq!((of("").size(), of(" 2 ").size(), of("100").size()), (Ok(25), Ok(2), Ok(100)));
        assert_eq!((of("").most(10), of("10").most(10)), (Ok(None), Ok(Some(10))));
        for limit in ["0", "501", "-1", "x", "1e1", "18446744073709551616"] {
            let error = of(limit).size().expect_err("no size of a page");
            assert!(error.text.ends_with("is not legal: a number from 1 to 500"), "{error:?}");
        }
    }

    #[test]
    fn address_keeps_filters_and_drops_the_place() {
        let place = PagePlace { cursor: "x".into(), limit: "50".into(), ..PagePlace::default() };
        let list = JobsQuery { place, ..list(&[("state", "failed"), ("q", "a&b")]) };
        let address = list.address(&SiteLinks::new("/"), "/jobs", &[("cursor", "y")]);
        assert_eq!(address, "/jobs?status=failed&text=a%26b&limit=50&cursor=y");
        assert!(!list.is_plain() && JobsQuery::default().is_plain());
        let dead = list.of_dead();
        assert_eq!(
            dead.address(&SiteLinks::new("/"), dead.path(), &[]),
            "/dead?text=a%26b&limit=50"
        );
        let file = dead.address(&SiteLinks::new("/"), "/jobs.csv", &[]);
        assert_eq!(file, "/jobs.csv?text=a%26b&dead=true");
    }
}
