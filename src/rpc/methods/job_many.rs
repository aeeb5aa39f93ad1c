//! `job.change_many`: retries, stops, deletes or edits many jobs, named ones or all that match filters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::job_edit::{EditedValues, may_edit};
use super::job_list::{self, ListJobs};
use super::job_types::ListedJob;
use super::params::{Spelled, page_size};
use crate::client::{JobChange, JobValues, ManyChanged, UnchangedJob};
use crate::proto::job::JobId;
use crate::store::{JobSummary, ListQuery};

/// The maximum number of jobs that one call names, or that its filter finds.
const JOBS_MAX: usize = ListQuery::LIMIT_MAX;
/// The maximum number of dead letters that a filter finds.
const DEAD_MAX: usize = 100_000;

methods! {
    /// Groups the latest failed jobs that job.list finds by the kind of their error.
    "job.errors", Scope::Read => job_list::errors;
    /// Retries, stops, deletes or edits many jobs: those that are named, or all that match a filter.
    "job.change_many", Scope::Submit => |context, given| change(context, given, false);
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
pub(super) struct ChangeMany {
    /// The change: retry, stop, delete or edit.
    change: ChangeWord,
    /// The ids of the jobs, at most 1000.
    #[serde(default)]
    ids: Vec<Spelled<JobId>>,
    /// Finds the jobs, as the parameters of job.list do; at most its `limit`, 1000 without it. Without a state, those
    /// that the change can change, for retry those in error.
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
}

/// The result of a change of many jobs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ManyChangedDocument {
    /// The number of jobs that were changed.
    pub(crate) done: u64,
    /// The number of jobs that stay as they are.
    pub(crate) left: u64,
    /// Why the first of these does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The jobs that stay as they are, with their reasons; at most 1000.
    pub(crate) problems: Vec<UnchangedJob>,
    /// True if more jobs match.
    pub(crate) more: bool,
    /// With `dry_run`: the jobs that would be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<ListedJob>>,
}

impl ChangeMany {
    /// A change of dead letters: of those that are named, or, with a filter, of all that it finds. `yes` confirms it.
    pub(super) fn of_dead(
        change: ChangeWord,
        ids: Vec<Spelled<JobId>>,
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
        }
    }
}

/// Changes jobs, or only dead letters.
pub(super) async fn change(
    context: CallContext,
    given: ChangeMany,
    only_dead: bool,
) -> Result<ManyChangedDocument, RpcError> {
    let most = if only_dead { DEAD_MAX } else { JOBS_MAX };
    let wrong = |field: &str, message: String| Err(RpcError::wrong(field, message));
    let mut change = match given.change {
        ChangeWord::Retry => {
            JobChange::Retry { with_dependents: given.with_dependents, changes: given.changes }
        }
        ChangeWord::Stop => JobChange::Stop,
        ChangeWord::Delete => JobChange::Delete,
        ChangeWord::Edit => JobChange::Edit(given.edit.edit()?),
    };
    if let JobChange::Retry { changes, .. } | JobChange::Edit(JobValues { changes, .. }) =
        &mut change
    {
        context.keep_groups(changes);
    }
    let word = change.word();
    let sees = |job: &JobSummary| context.finds(job);
    let mut changed = ManyChanged::default();
    let is_named = given.filter.is_none();
    let (ids, more) = match (given.filter, given.ids.len()) {
        (Some(_), 1..) => return wrong("filter", "`filter` cannot be set beside `ids`".to_owned()),
        (None, 0) => {
            return wrong("ids", "name jobs in `ids`, or find them with `filter`".to_owned());
        }
        (None, 1..=JOBS_MAX) => (named(&context, given.ids, &mut changed).await, false),
        (None, _) => return wrong("ids", format!("`ids` names more than {JOBS_MAX} jobs")),
        (Some(filter), 0) => {
            if change.destroys() && !given.yes && !given.dry_run {
                let message = format!("to {word} all jobs that match, set yes = true; or dry_run");
                return wrong("yes", message);
            }
            let limit = page_size(Some(filter.limit.unwrap_or(most)), most)?;
            let (query, search) = filter.into_search(limit);
            let found = context.client.to_change(&query, &search, &change, sees).await?;
            (found.items.into_iter().map(|job| job.id).collect(), found.next.is_some())
        }
    };
    let (mut jobs, mut may) = (None, Vec::new());
    if given.dry_run {
        let found = context.client.job_summaries(ids).await?;
        jobs = Some(found.into_iter().filter(sees).map(ListedJob).collect());
    } else {
        // What a filter finds are dead letters.
        let only_dead = only_dead && is_named;
        for id in ids {
            match may_change(&context, &id, &change, only_dead).await {
                Ok(()) => may.push(id),
                Err(error) => changed.leave(&id, error.message),
            }
        }
    }
    context.client.change_many(&may, &change, &mut changed).await?;
    let reason = changed.reason().map(str::to_owned);
    let ManyChanged { done, left, problems } = changed;
    Ok(ManyChangedDocument { done: done.len() as u64, left, reason, problems, more, jobs })
}

/// Returns the ids of jobs by their unique beginnings.
async fn named(
    context: &CallContext,
    ids: Vec<Spelled<JobId>>,
    changed: &mut ManyChanged,
) -> Vec<JobId> {
    let mut named = Vec::new();
    for Spelled(id) in ids {
        match context.job_named(id.clone()).await {
            Ok(id) => named.push(id),
            Err(error) => changed.leave(&id, error.message),
        }
    }
    named
}

async fn may_change(
    context: &CallContext,
    id: &JobId,
    change: &JobChange,
    only_dead: bool,
) -> Result<(), RpcError> {
    context.may_name(id).await?;
    if only_dead {
        context.client.dead_letter(id).await?;
    }
    match change {
        JobChange::Edit(edit) => may_edit(context, id, edit).await,
        JobChange::Retry { with_dependents, changes } => {
            if *with_dependents {
                context.may_retry_dependents()?;
            }
            context.may_correct(id, changes, change.word()).await
        }
        _ => context.may_change(id, change.word()).await,
    }
}
