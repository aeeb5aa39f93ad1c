//! The states, ends and times that a search implies, and the places of its jobs, so that it reads no others: their states and ends, and the times
//! between which they stand in the indexes.
//! The children of a job are places of a search too: their parent names them, so that no other job is read.

use super::cursor::Cursor;
use super::newest::BoundedIndex;
use super::search_jobs::{Condition, JobSearch};
use super::{JobStore, JobSummary, ListQuery, Result, Shards};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{JobEnd, JobId, JobStatus};

/// A range of the places of ended jobs, in microseconds: they stand there by when they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlaceRange {
    /// The lowest score; no job has ended before its creation.
    pub(super) from: Option<i64>,
    to: Option<i64>,
}

impl PlaceRange {
    /// Returns the place after which a page begins: its cursor, or the end of the range.
    pub(super) fn begin(&self, cursor: Option<&Cursor>) -> Option<Cursor> {
        // The lowest id: at the end of the range, ids of the same time are of no matter.
        let end = self.to.and_then(|to| Some(Cursor::new(to + 1, "-".parse().ok()?)));
        match (cursor, end) {
            (Some(cursor), Some(end)) if end.score < cursor.score => Some(end),
            (Some(cursor), _) => Some(cursor.clone()),
            (None, end) => end,
        }
    }
}

impl JobStore<'_> {
    /// The places of a page of jobs that stand in a range of times.
    pub(super) async fn places(self, query: &ListQuery, range: &PlaceRange) -> Result<Vec<Cursor>> {
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
        Ok(entries.into_iter().map(|(score, id)| Cursor::new(score, id)).collect())
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
        for condition in &self.conditions {
            match condition {
                Condition::Contains("error", text) => {
                    // Those that wait to be retried have the error of their last attempt; others only if they are named.
                    let has = [JobStatus::Error, JobStatus::Scheduled];
                    statuses.retain(|status| !query.statuses.is_empty() || has.contains(status));
                    ends.retain(|end| end.may_have_error(text));
                }
                Condition::Kind(kind) => {
                    statuses.retain(|status| *status == JobStatus::Error);
                    ends.retain(|end| end.may_be_of_kind(kind));
                }
                Condition::Cause(cause) => {
                    statuses.retain(|status| *status == JobStatus::Error);
                    ends.retain(|end| *end == cause.end());
                }
                Condition::Cancelled(wanted) => {
                    statuses.retain(|status| !wanted || *status == JobStatus::Error);
                    ends.retain(|end| JobEnd::FAILURES.contains(end) != *wanted);
                }
                Condition::Since("finished_at", _) | Condition::Until("finished_at", _) => {
                    statuses.retain(|status| status.is_terminal());
                }
                Condition::Has("held_by", true) => {
                    statuses.retain(|status| *status == JobStatus::Dispatched);
                }
                _ => {}
            }
        }
        if ends.is_empty() {
            statuses.retain(|status| *status != JobStatus::Error);
        }
        (!statuses.is_empty()).then(|| ListQuery { statuses, ends, ..query.clone() })
    }

    pub(super) fn range(&self) -> PlaceRange {
        // Times in hashes have milliseconds, places the whole time.
        const MS_US: i64 = 1000;
        // No job has ended before it was created.
        let from = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Since(_, time) => Some(time.as_microsecond()),
            _ => None,
        });
        let to = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Until("finished_at", time) => {
                Some(time.as_microsecond().saturating_add(MS_US))
            }
            _ => None,
        });
        PlaceRange { from: from.max(), to: to.min() }
    }
}

impl Shards {
    /// Returns the jobs that the script of a job submitted, the latest first; `None` if the job is gone or hidden from the
    /// caller, who learns no difference, so that nobody knows them.
    pub(super) async fn children_of(
        &self,
        parent: &str,
        sees: impl Fn(&JobSummary) -> bool,
    ) -> Result<Option<Vec<JobId>>> {
        let (Ok(parent), Ok(store)) = (parent.parse::<JobId>(), self.of(parent)) else {
            return Ok(None);
        };
        let summary = store.jobs().summaries(vec![parent.clone()]).await?;
        if !summary.into_iter().flatten().any(|job| sees(&job)) {
            return Ok(None);
        }
        let job = store.jobs().job(&parent).await?.and_then(Result::ok);
        Ok(job.map(|job| job.children.into_iter().rev().collect()))
    }

    /// A page of children in the states of a query, each with the cursor after it.
    pub(super) async fn placed_children(
        &self,
        children: &[JobId],
        query: &ListQuery,
    ) -> Result<Vec<(Cursor, Option<JobSummary>)>> {
        let after = query.cursor.as_ref();
        let first = after.and_then(|after| children.iter().position(|id| *id == after.id));
        let page = children.iter().skip(first.map_or(0, |place| place + 1)).take(query.limit);
        let ids = self.by_shard(page.clone().cloned());
        let jobs = self.of_each(ids, |store, ids| store.jobs().whole_summaries(ids)).await?;
        let placed = |(id, job): (&JobId, Option<JobSummary>)| {
            let created = job.as_ref().and_then(|job| job.time("created_at"));
            let created_us = created.map_or(0, jiff::Timestamp::as_microsecond);
            (Cursor::new(created_us, id.clone()), job.filter(|job| query.asks_for(job)))
        };
        Ok(page.zip(jobs).map(placed).collect())
    }
}

impl ListQuery {
    /// Returns true if a job is in one of the states and has one of the ends that are asked for.
    fn asks_for(&self, job: &JobSummary) -> bool {
        let error = job.fields.get("error").filter(|_| job.status == JobStatus::Error);
        let end = error.map(|error| FailureCause::of(error).end());
        self.wanted_statuses().any(|status| status == job.status)
            && end.is_none_or(|end| self.ends.is_empty() || self.ends.contains(&end))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::proto::job_filter::JobFilter;

    fn search(values: &[(&str, &str)]) -> JobSearch {
        let filter = JobFilter::of(values.iter().copied());
        JobSearch::of(&filter, &TimeZone::UTC, Timestamp::UNIX_EPOCH).expect("legal").1
    }

    #[test]
    fn filter_that_implies_a_state_goes_there_alone() {
        let all = ListQuery::default();
        let search = |name: &str, value: &str| search(&[(name, value)]);
        let of = |name: &str, value: &str| {
            search(name, value).narrow(&all).map(|of| (of.statuses, of.ends))
        };
        let error = vec![JobStatus::Error];
        // A job that waits to be retried has an error too.
        let has_error = |name: &str| match name {
            "error" => vec![JobStatus::Scheduled, JobStatus::Error],
            _ => error.clone(),
        };
        for (name, value, ends) in [
            ("error", "boom: 7", &JobEnd::FAILURES[..]),
            ("error", "Opped", &JobEnd::IN_ERROR),
            ("error", "Boom 7", &JobEnd::FAILURES),
            ("error", "by job a", &[JobEnd::Failed, JobEnd::Replaced, JobEnd::Expired]),
            ("kind", "exit code 3", &JobEnd::FAILURES),
            ("kind", "stopped", &[JobEnd::Failed, JobEnd::Cancelled, JobEnd::Expired]),
            ("error", "failures of", &[JobEnd::Failed, JobEnd::Cancelled, JobEnd::Expired]),
            (
                "kind",
                "stopped after 2 failures of graph g",
                &[JobEnd::Failed, JobEnd::Cancelled, JobEnd::Expired],
            ),
            ("failed_because", "stopped", &[JobEnd::Cancelled]),
            ("failed_because", "expired", &[JobEnd::Expired]),
            ("failed_because", "crashed", &[JobEnd::Failed]),
        ] {
            assert_eq!(of(name, value), Some((has_error(name), ends.to_vec())), "{name} {value}");
        }
        let waiting = ListQuery { statuses: vec![JobStatus::Dispatched], ..all.clone() };
        assert!(search("error", "boom").narrow(&waiting).is_some());
        assert!(search("kind", "boom").narrow(&waiting).is_none());
        let (statuses, ends) = of("cancelled", "false").expect("some");
        assert_eq!((statuses.len(), ends), (JobStatus::ALL.len(), JobEnd::FAILURES.to_vec()));
        assert_eq!(of("held", "true").expect("some").0, [JobStatus::Dispatched]);
        let cancelled = ListQuery { ends: vec![JobEnd::Cancelled], statuses: error, ..all.clone() };
        assert!(search("cancelled", "false").narrow(&cancelled).is_none());
    }

    #[test]
    fn times_bound_the_places() {
        let range =
            search(&[("since", "2026-01-01T00:00:00Z"), ("ended_until", "2026-01-02T00:00:00Z")]);
        let range = range.range();
        assert_eq!(range.from, Some(1_767_225_600_000_000));
        let begin = range.begin(None).expect("an end");
        assert_eq!(begin.score, 1_767_312_000_001_001);
        let cursor: Cursor = "5.a".parse().expect("legal");
        assert_eq!(range.begin(Some(&cursor)), Some(cursor));
    }

    #[test]
    fn period_that_ends_before_it_begins_is_refused() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let of = |since, until| {
            let filter = JobFilter::of([("ended_until", until), ("ended_since", since)]);
            JobSearch::of(&filter, &TimeZone::UTC, now)
        };
        let refused = of("1h", "2h").expect_err("turned round");
        assert_eq!(refused.row.name, "ended_until");
        assert_eq!(refused.reason, "the period ends before it begins: `2h`");
        assert!(of("2h", "1h").is_ok());
    }

    #[test]
    fn illegal_value_is_refused_with_its_filter() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        for (name, value, reason) in [
            ("status", "nosuch", "unknown state `nosuch`: expected waiting, "),
            ("since", "banana", "`banana` is not a time: expected a duration ago"),
            ("ended_until", "-1h", "`-1h` is not a time"),
            ("script_type", "<b>", "script type `<b>` is not legal: a lower-case letter"),
            ("queue", "none", "queue `none` is not legal: type:T"),
            ("parent", "a:b", "`a:b` is not legal"),
            ("late", "maybe", "`maybe` is not legal: true or false"),
            ("failed_because", "luck", "`luck` is not legal"),
        ] {
            let filter = JobFilter::of([(name, value)]);
            let error = JobSearch::of(&filter, &TimeZone::UTC, now).expect_err("no value of it");
            assert!(error.row.name == name && error.reason.contains(reason), "{error:?}");
        }
    }
}
