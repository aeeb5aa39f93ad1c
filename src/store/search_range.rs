//! The states, ends and times that a search implies, and the places of its jobs, so that it reads no others: their states and ends, and the times
//! between which they stand in the indexes.

use jiff::Timestamp;

use super::listing::{Cursor, ListQuery};
use super::newest::BoundedIndex;
use super::search_jobs::JobSearch;
use super::{Store, StoreError};
use crate::proto::job::{JobEnd, JobStatus};

/// A range of the places of ended jobs, in microseconds: they stand there by when they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlaceRange {
    /// The lowest score; no job has ended before its creation.
    pub(super) from: Option<i64>,
    /// The highest score.
    to: Option<i64>,
}

impl PlaceRange {
    /// Returns the place after which a page begins: its cursor, or the end of the range.
    pub(super) fn begin(&self, cursor: Option<&Cursor>) -> Option<Cursor> {
        // The lowest id: at the end of the range, ids of the same time are of no matter.
        let end = self.to.and_then(|to| Some(Cursor { score: to + 1, id: "-".parse().ok()? }));
        match (cursor, end) {
            (Some(cursor), Some(end)) if end.score < cursor.score => Some(end),
            (Some(cursor), _) => Some(cursor.clone()),
            (None, end) => end,
        }
    }
}

impl Store {
    /// The places of a page of jobs that stand in a range of times.
    pub(super) async fn places(
        &self,
        query: &ListQuery,
        range: &PlaceRange,
    ) -> Result<Vec<Cursor>, StoreError> {
        let limit = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let script_type = query.script_type.as_ref();
        let after = range.begin(query.cursor.as_ref());
        if query.wanted_statuses().next().is_none() {
            return Ok(Vec::new());
        }
        let entries = if query.dead {
            self.newest_dead(script_type, after.as_ref(), limit).await?
        } else {
            let mut indexes = Vec::new();
            for status in query.wanted_statuses() {
                if status.is_terminal() {
                    let from = range.from;
                    let ended = self.ended_indexes(status, query).await?.into_iter();
                    indexes.extend(ended.map(|key| BoundedIndex { key, from }));
                } else {
                    // A job that was put back stands at the front of its queue, whenever it was created.
                    let of_status = self.indexes(status, script_type).await?.into_iter();
                    indexes.extend(of_status.map(BoundedIndex::whole));
                }
            }
            self.newest(&indexes, after.as_ref(), limit).await?
        };
        Ok(entries.into_iter().map(|(score, id)| Cursor { score, id }).collect())
    }
}

impl JobSearch {
    /// Returns the query with the states and ends alone that jobs of the search can have; `None` if there are none.
    pub(super) fn narrow(&self, query: &ListQuery) -> Option<ListQuery> {
        let mut statuses: Vec<JobStatus> = query.wanted_statuses().collect();
        let mut ends = match query.ends.as_slice() {
            [] => JobEnd::IN_ERROR.to_vec(),
            some => some.to_vec(),
        };
        if self.error.is_some() || self.error_kind.is_some() {
            statuses.retain(|status| *status == JobStatus::Error);
        }
        if let Some(cause) = self.cause {
            statuses.retain(|status| *status == JobStatus::Error);
            ends.retain(|end| *end == cause.end());
        }
        if let Some(wanted) = self.cancelled {
            statuses.retain(|status| !wanted || *status == JobStatus::Error);
            ends.retain(|end| JobEnd::FAILURES.contains(end) != wanted);
        }
        if self.ended_since.is_some() || self.ended_until.is_some() {
            statuses.retain(|status| status.is_terminal());
        }
        if self.held == Some(true) {
            statuses.retain(|status| *status == JobStatus::Dispatched);
        }
        if ends.is_empty() {
            statuses.retain(|status| *status != JobStatus::Error);
        }
        (!statuses.is_empty()).then(|| ListQuery { statuses, ends, ..query.clone() })
    }

    /// Returns the places that jobs of the search can have.
    pub(super) fn range(&self) -> PlaceRange {
        // Times in hashes have milliseconds, places the whole time.
        const MS_US: i64 = 1000;
        let from = [self.since, self.ended_since].into_iter().flatten().max();
        PlaceRange {
            from: from.map(Timestamp::as_microsecond),
            to: self.ended_until.map(|until| until.as_microsecond().saturating_add(MS_US)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::error_kind::FailureCause;

    #[test]
    fn filter_that_implies_a_state_goes_there_alone() {
        let all = ListQuery::default();
        let of = |search: JobSearch| search.narrow(&all).map(|of| (of.statuses, of.ends));
        let error = vec![JobStatus::Error];
        let text = JobSearch { error: Some("x".to_owned()), ..JobSearch::default() };
        assert_eq!(of(text), Some((error.clone(), JobEnd::IN_ERROR.to_vec())));
        for (cause, end) in [
            (FailureCause::Stopped, JobEnd::Cancelled),
            (FailureCause::Expired, JobEnd::Expired),
            (FailureCause::Crashed, JobEnd::Failed),
        ] {
            let search = JobSearch { cause: Some(cause), ..JobSearch::default() };
            assert_eq!(of(search), Some((error.clone(), vec![end])));
        }
        let failed = JobSearch { cancelled: Some(false), ..JobSearch::default() };
        let (statuses, ends) = of(failed.clone()).expect("some");
        assert_eq!((statuses.len(), ends), (JobStatus::ALL.len(), JobEnd::FAILURES.to_vec()));
        let cancelled = ListQuery { ends: vec![JobEnd::Cancelled], statuses: error, ..all.clone() };
        assert!(failed.narrow(&cancelled).is_none());
    }

    #[test]
    fn times_bound_the_places() {
        let at = |text: &str| text.parse::<Timestamp>().ok();
        let search = JobSearch {
            since: at("2026-01-01T00:00:00Z"),
            ended_until: at("2026-01-02T00:00:00Z"),
            ..JobSearch::default()
        };
        let range = search.range();
        assert_eq!(range.from, Some(1_767_225_600_000_000));
        let begin = range.begin(None).expect("an end");
        assert_eq!(begin.score, 1_767_312_000_001_001);
        let cursor: Cursor = "5.a".parse().expect("legal");
        assert_eq!(range.begin(Some(&cursor)), Some(cursor));
    }
}
