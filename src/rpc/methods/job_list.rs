//! `job.list`: a page of jobs, by state and type, or by what no index has. `job.errors`: failures by their kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::belongs::Belongs;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::job_types::ListedJob;
use super::params::{PastMoment, Spelled, page_size};
use crate::client::ErrorGroupsDocument;
use crate::proto::error_kind::{ErrorKindFilter, FailureCause};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::queue::Queue;
use crate::proto::target::ScriptType;
use crate::store::{Cursor, JobSearch, JobSummary, ListQuery};

/// A page of jobs to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListJobs {
    /// Only jobs in this state.
    status: Option<JobStatus>,
    /// Only jobs of this script type.
    script_type: Option<Spelled<ScriptType>>,
    /// The size of the page, up to 1000; 50 without it.
    pub(super) limit: Option<usize>,
    /// The `next` of the page before.
    pub(super) cursor: Option<Spelled<Cursor>>,
    /// Only jobs of this caller.
    #[serde(alias = "caller_id")]
    caller: Option<String>,
    /// Only jobs whose name contains this text.
    name: Option<String>,
    /// Only jobs with all of these tags.
    #[serde(default)]
    tags: Vec<String>,
    /// Only jobs whose error contains this text.
    error: Option<String>,
    /// Only jobs whose id begins with this text, or whose name, tags or error contain it.
    text: Option<String>,
    /// Only jobs that failed because of this: timeout, expired, prerequisite, crashed, invalid, `signature_expired`, unsigned or
    /// script; or that ended because they were stopped or replaced: stopped, replaced.
    #[schemars(extend("enum" = ["stopped", "replaced", "timeout", "expired", "prerequisite", "crashed", "invalid", "signature_expired", "unsigned", "script", null]))]
    failed_because: Option<Spelled<FailureCause>>,
    /// Only jobs of this queue, as queue.list names it.
    queue: Option<Spelled<Queue>>,
    /// Only jobs that a limit holds; with false, only others.
    held: Option<bool>,
    /// Only jobs that were stopped or replaced; with false, only others.
    cancelled: Option<bool>,
    /// Only jobs that did not end within their `expect_within`; with false, only others.
    late: Option<bool>,
    /// Only jobs that were created at this time or after it: RFC 3339, or as hero job list has it, in UTC: 24h (ago),
    /// 09:00, yesterday (its start), yesterday 18:00, friday.
    since: Option<Spelled<PastMoment>>,
    /// Only jobs that were created at this time or before it.
    until: Option<Spelled<PastMoment>>,
    /// Only jobs that ended at this time or after it; a job that has not ended is left out.
    ended_since: Option<Spelled<PastMoment>>,
    /// Only jobs that ended at this time or before it.
    ended_until: Option<Spelled<PastMoment>>,
    /// Only jobs that ran last on this actor: TYPE:GROUP:INSTANCE.
    actor: Option<String>,
    /// Only jobs that ran last, and ended, on this machine.
    host: Option<String>,
    /// Only jobs that the script of this job submitted.
    parent: Option<Spelled<JobId>>,
    /// Only jobs whose error is of this kind: as `hero job errors` prints it, without numbers, ids, paths and quoted texts, or
    /// an error of the kind.
    kind: Option<String>,
    /// Only dead letters: jobs that used up their attempts, or took down too many actors.
    #[serde(default)]
    dead: bool,
}

/// A page of jobs.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobPage {
    /// The jobs. There may be less than a page with more to come.
    jobs: Vec<ListedJob>,
    /// The cursor of the next page, if there may be one.
    next: Option<String>,
    /// The number of jobs that were searched for this page.
    searched: usize,
    /// True if there are no others: the search has reached the end. A search ends after two seconds with what it has
    /// found; `next` goes on from there.
    complete: bool,
}

impl ListJobs {
    /// Finds dead letters.
    pub(super) fn of_dead(
        script_type: Option<Spelled<ScriptType>>,
        error: Option<String>,
        kind: Option<String>,
    ) -> Self {
        Self { script_type, error, kind, dead: true, ..Self::default() }
    }

    /// Returns the jobs that it finds, at most so many.
    pub(super) fn into_search(self, limit: usize) -> (ListQuery, JobSearch) {
        let time = |of: Option<Spelled<PastMoment>>| of.map(|Spelled(PastMoment(time))| time);
        let query = ListQuery {
            statuses: self.status.into_iter().collect(),
            script_type: self.script_type.map(|Spelled(name)| name),
            dead: self.dead,
            limit,
            cursor: self.cursor.map(|Spelled(cursor)| cursor),
            budget: Some(ListQuery::BUDGET),
            ..ListQuery::default()
        };
        let search = JobSearch {
            caller: self.caller,
            name: self.name,
            tags: self.tags,
            error: self.error,
            text: self.text,
            queue: self.queue.map(|Spelled(queue)| queue),
            held: self.held,
            cancelled: self.cancelled,
            late: self.late,
            since: time(self.since),
            until: time(self.until),
            ended_since: time(self.ended_since),
            ended_until: time(self.ended_until),
            actor: self.actor,
            host: self.host,
            parent: self.parent.map(|Spelled(parent)| parent),
            error_kind: self.kind.as_deref().map(ErrorKindFilter::new),
            cause: self.failed_because.map(|Spelled(cause)| cause),
        };
        (query, search)
    }
}

pub(super) async fn list(context: CallContext, given: ListJobs) -> Result<JobPage, RpcError> {
    let limit = page_size(given.limit, ListQuery::LIMIT_MAX)?;
    let (query, search) = given.into_search(limit);
    let sees = |job: &JobSummary| Belongs::of_summary(job).is_within(&context.caller);
    let found = context.client.find_jobs(&query, &search, sees).await?;
    Ok(JobPage {
        jobs: found.items.into_iter().map(ListedJob).collect(),
        searched: found.searched,
        complete: found.complete,
        next: found.next.map(|cursor| cursor.to_string()),
    })
}

/// Groups failed jobs; `limit` bounds the groups.
pub(super) async fn errors(
    context: CallContext,
    given: ListJobs,
) -> Result<ErrorGroupsDocument, RpcError> {
    let limit = page_size(given.limit, ListQuery::LIMIT_MAX)?;
    let (query, search) = given.into_search(limit);
    let sees = |job: &JobSummary| Belongs::of_summary(job).is_within(&context.caller);
    Ok(context.client.error_groups(&query, &search, sees, limit).await?)
}
