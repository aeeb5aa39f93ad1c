//! `job.change_many`: retries, stops, deletes or edits many jobs, named ones or all that match filters.

use std::time::Instant;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::access::CheckedJob;
use super::job_change::{EditedValues, may_edit};
use super::job_list::{self, ListJobs};
use super::job_types::ListedJob;
use super::{CallContext, Result, RpcError, Scope};
use crate::client::{JobChange, JobValues, ManyChanged, UnchangedJob};
use crate::proto::job::{JobId, JobReference};
use crate::store::{JobSummary, ListQuery};

/// The maximum number of jobs that one call names, and that one step of a call with a filter changes.
const JOBS_MAX: usize = ListQuery::LIMIT_MAX;

methods! {
    /// Groups the latest failed jobs that job.list finds by the kind of their error.
    "job.errors", Scope::Read => job_list::errors;
    /// Retries, stops, deletes or edits many jobs: those that are named, or all that match a filter.
    "job.change_many", Scope::Submit => |context, params| change(context, params, false);
}

/// The word of a change.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChangeWord {
    Retry,
    Stop,
    Delete,
    Edit,
}

/// Jobs to change: `ids`, or the jobs that `filter` finds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "they are the parameters of a method")]
pub(super) struct ChangeMany {
    /// The change: retry, stop, delete or edit.
    change: ChangeWord,
    /// The ids of the jobs, at most 1000.
    #[serde(default)]
    ids: Vec<JobReference>,
    /// Finds the jobs, as the parameters of job.list do. The call goes on until all that match are changed, its `limit`
    /// is reached, or two seconds are over: `next` and `remaining` then say where to go on, and how many are left. Without a
    /// state, those that the change can change, for retry those that failed.
    filter: Option<ListJobs>,
    /// With retry: also the dependents that failed because a job did.
    #[serde(default)]
    with_dependents: bool,
    /// With retry: new settings of all these jobs, members as in a job to submit; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
    /// With edit: the new values.
    #[serde(default)]
    edit: EditedValues,
    /// Changes nothing, and returns the jobs.
    #[serde(default)]
    dry_run: bool,
    /// Confirms that all jobs that `filter` finds are stopped or deleted.
    #[serde(default)]
    yes: bool,
    /// With stop: also the jobs below them.
    #[serde(default)]
    children: bool,
    /// Does not count the jobs that are left for further calls: `remaining` is 0.
    #[serde(default)]
    uncounted: bool,
}

/// The result of a change of many jobs.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct ManyChangedDocument {
    /// The number of jobs that were changed.
    pub(crate) done: u64,
    /// The number of these that still run: their actors were told to stop them.
    pub(crate) told: u64,
    /// The number of jobs that stay as they are.
    pub(crate) left: u64,
    /// Why the first of these does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The jobs that stay as they are, with their reasons; at most 1000.
    pub(crate) problems: Vec<UnchangedJob>,
    /// True if more jobs match.
    pub(crate) more: bool,
    /// The `cursor` of the filter with which the next call goes on, if more jobs may match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// The number of jobs that match from there on.
    pub(crate) remaining: u64,
    /// False if they were not all counted: then there are at least so many.
    pub(crate) remaining_complete: bool,
    /// The number of jobs that the call has found by its filter.
    pub(crate) found: u64,
    /// With `dry_run`: the jobs that would be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<ListedJob>>,
}

impl ManyChangedDocument {
    /// Returns the number of jobs that match, after a `dry_run`.
    pub(crate) fn matching(&self) -> u64 {
        self.jobs.as_ref().map_or(0, Vec::len) as u64 + self.remaining
    }
}

impl ChangeMany {
    /// A change of dead letters: of those that are named, or, with a filter, of all that it finds. `yes` confirms it.
    pub(super) fn of_dead(
        change: ChangeWord,
        ids: Vec<JobReference>,
        filter: Option<ListJobs>,
        dry_run: bool,
    ) -> Self {
        Self {
            change,
            ids,
            filter,
            with_dependents: false,
            changes: Map::new(),
            edit: EditedValues::default(),
            dry_run,
            yes: true,
            children: false,
            uncounted: false,
        }
    }
}

/// Changes jobs, or only dead letters.
pub(super) async fn change(
    context: CallContext,
    params: ChangeMany,
    only_dead: bool,
) -> Result<ManyChangedDocument> {
    let wrong = |field: &str, message: String| Err(RpcError::wrong(field, message));
    let mut change = match params.change {
        ChangeWord::Retry => {
            JobChange::Retry { with_dependents: params.with_dependents, changes: params.changes }
        }
        ChangeWord::Stop if params.children => JobChange::StopTree,
        ChangeWord::Stop => JobChange::Stop,
        ChangeWord::Delete => JobChange::Delete,
        ChangeWord::Edit => JobChange::Edit(params.edit.edit()?),
    };
    if let JobChange::Retry { changes, .. } | JobChange::Edit(JobValues { changes, .. }) =
        &mut change
    {
        context.keep_groups(changes);
    }
    match (params.filter, params.ids.len()) {
        (Some(_), 1..) => wrong("filter", "`filter` cannot be set beside `ids`".to_owned()),
        (None, 0) => wrong("ids", "name jobs in `ids`, or find them with `filter`".to_owned()),
        (None, 1..=JOBS_MAX) => {
            change_named(&context, &change, params.ids, (params.dry_run, only_dead)).await
        }
        (None, _) => wrong("ids", format!("`ids` names more than {JOBS_MAX} jobs")),
        (Some(_), 0) if change.destroys() && !params.yes && !params.dry_run => {
            let word = change.word();
            wrong("yes", format!("to {word} all jobs that match, set yes = true; or dry_run"))
        }
        (Some(filter), 0) => {
            // Jobs of others are among them; a caller that does not operate deletes its own alone.
            if matches!(change, JobChange::Delete) && !params.dry_run && context.caller.operates() {
                context.needs(Scope::Admin, "job.change_many that deletes what a filter finds")?;
            }
            change_found(&context, &change, filter, (params.dry_run, params.uncounted)).await
        }
    }
}

async fn change_named(
    context: &CallContext,
    change: &JobChange,
    ids: Vec<JobReference>,
    (dry_run, only_dead): (bool, bool),
) -> Result<ManyChangedDocument> {
    let mut changed = ManyChanged::default();
    let ids = named(context, ids, &mut changed).await;
    let mut jobs = None;
    if dry_run {
        let found = context.client.jobs().summaries(ids).await?.into_iter();
        jobs = Some(found.filter(|job| context.finds(job)).map(ListedJob).collect());
    } else {
        let ids = ids.into_iter().map(|id| (id, None));
        change_each(context, (change, only_dead), ids, &mut changed).await?;
    }
    Ok(ManyChangedDocument { jobs, ..document(changed) })
}

/// Changes all jobs that a filter finds, step by step, until its limit is reached or the time is over.
async fn change_found(
    context: &CallContext,
    change: &JobChange,
    filter: ListJobs,
    (dry_run, uncounted): (bool, bool),
) -> Result<ManyChangedDocument> {
    let (began, client) = (Instant::now(), &context.client);
    let left = |began: Instant| ListQuery::BUDGET.saturating_sub(began.elapsed());
    let sees = |job: &JobSummary| context.finds(job);
    let most = filter.rest.limit.unwrap_or(usize::MAX);
    if most == 0 {
        return Err(RpcError::wrong("limit", "`limit` is from 1 on"));
    }
    let _place = context.may_search().await?;
    let (mut query, search) = job_list::search_of(context, filter, most).await?;
    let (mut changed, mut jobs, mut reached) = (ManyChanged::default(), None, 0);
    let is_complete = loop {
        query.limit = (most - reached).min(JOBS_MAX);
        query.budget = Some(left(began));
        let found = client.jobs().to_change(&query, &search, change, sees).await?;
        reached += found.items.len();
        query.cursor = found.next;
        if dry_run {
            jobs = Some(found.items.into_iter().map(ListedJob).collect());
            break found.complete;
        }
        // What a filter finds are dead letters, if only these are wanted.
        let items = found.items.into_iter();
        let items = items.map(|job| (job.id.clone(), job.time("created_at")));
        change_each(context, (change, false), items, &mut changed).await?;
        if query.cursor.is_none() || reached >= most || left(began).is_zero() {
            break found.complete;
        }
    };
    let next = query.cursor.as_ref().map(ToString::to_string);
    let (remaining, remaining_complete) = match next {
        Some(_) if uncounted => (0, false),
        Some(_) => client.jobs().count_to_change(&query, &search, change, sees).await?,
        None => (0, is_complete),
    };
    let more = next.is_some();
    let counted =
        ManyChangedDocument { more, next, remaining, remaining_complete, ..document(changed) };
    Ok(ManyChangedDocument { jobs, found: reached as u64, ..counted })
}

/// Changes each job that the caller may change, and that was found or checked: not a later one with its id.
async fn change_each(
    context: &CallContext,
    (change, only_dead): (&JobChange, bool),
    jobs: impl IntoIterator<Item = CheckedJob>,
    changed: &mut ManyChanged,
) -> Result<()> {
    let (mut may, mut pinned) = (Vec::new(), Vec::new());
    for (id, found) in jobs {
        match may_change(context, &id, change, only_dead).await {
            Ok(checked) => {
                pinned.push((id.clone(), found.or(checked)));
                may.push(id);
            }
            Err(error) => changed.leave(&id, error.message),
        }
    }
    Ok(context.client.pinned(pinned).jobs().change_many(&may, change, changed).await?)
}

fn document(changed: ManyChanged) -> ManyChangedDocument {
    let reason = changed.reason().map(str::to_owned);
    let ManyChanged { done, told, left, problems } = changed;
    ManyChangedDocument {
        done: done.len() as u64,
        told: told as u64,
        left,
        reason,
        problems,
        remaining_complete: true,
        ..ManyChangedDocument::default()
    }
}

/// Returns the ids of jobs by their unique beginnings.
async fn named(
    context: &CallContext,
    ids: Vec<JobReference>,
    changed: &mut ManyChanged,
) -> Vec<JobId> {
    let mut named = Vec::new();
    for of in ids {
        match context.job_named(&of).await {
            Ok(id) => named.push(id),
            Err(error) => changed.leave(&of.id, error.message),
        }
    }
    named
}

/// Refuses a change that the caller may not make. Returns the time of creation of the job, if it was looked at.
async fn may_change(
    context: &CallContext,
    id: &JobId,
    change: &JobChange,
    only_dead: bool,
) -> Result<Option<Timestamp>> {
    context.may_name(id).await?;
    let dead =
        if only_dead { context.client.jobs().dead_letter(id).await?.created_at } else { None };
    let (_, checked) = match change {
        JobChange::Edit(edit) => may_edit(context, id, edit).await?,
        JobChange::Retry { with_dependents, changes } => {
            if *with_dependents {
                context.may_retry_dependents()?;
            }
            context.may_correct(id, changes, change.word()).await?
        }
        _ => {
            context.may_change(id, change.word()).await?;
            (id.clone(), None)
        }
    };
    Ok(dead.or(checked))
}
