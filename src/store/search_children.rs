//! The children of a job as places of a search: their parent names them, so that no other job is read.

use super::cursor::Cursor;
use super::{JobSummary, ListQuery, Result, Shards, Store};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{JobId, JobStatus};

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
        let summary = store.summaries(vec![parent.clone()]).await?;
        if !summary.into_iter().flatten().any(|job| sees(&job)) {
            return Ok(None);
        }
        let job = store.job(&parent).await?.and_then(Result::ok);
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
        let ids = page.clone().map(|id| (self.shard_of(id), id.clone())).collect();
        let jobs = self.of_each(ids, Store::whole_summaries).await?;
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
