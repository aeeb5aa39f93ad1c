//! `dead.*`: dead letters, jobs that used up their attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::super::caller::Scope;
use super::super::error::{RpcError, code};
use super::super::method::{CallContext, Method};
use super::job_types::ListedDead;
use super::params::{Spelled, page_size};
use crate::client::{DeadTally, JobChange};
use crate::proto::job::JobId;
use crate::proto::target::ScriptType;
use crate::store::{DeadCursor, DeadFilter, Store};

/// The maximum number of dead letters that one call names.
const IDS_MAX: usize = 1000;

pub(super) fn methods() -> [Method; 3] {
    [
        Method::new(
            "dead.list",
            Scope::Read,
            "Lists dead letters type by type, the newest first, page by page.",
            list,
        ),
        Method::new(
            "dead.retry",
            Scope::Operate,
            "Runs dead letters again: those that are named, or all that match a filter.",
            retry,
        ),
        Method::new(
            "dead.delete",
            Scope::Operate,
            "Deletes dead letters: those that are named, or, with the scope admin, all that match a filter.",
            delete,
        ),
    ]
}

/// A page of dead letters to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListDead {
    /// Only dead letters of this script type.
    script_type: Option<Spelled<ScriptType>>,
    /// Only dead letters whose error contains this text.
    error: Option<String>,
    /// The size of the page, up to 500; 50 without it.
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<Spelled<DeadCursor>>,
}

/// A page of dead letters.
#[derive(Serialize, JsonSchema)]
struct DeadLetters {
    /// The dead letters. A caller with bounds may get less than a page with more to come.
    jobs: Vec<ListedDead>,
    /// The cursor of the next page, if there may be one.
    next: Option<String>,
}

async fn list(context: CallContext, given: ListDead) -> Result<DeadLetters, RpcError> {
    let limit = page_size(given.limit, Store::DEAD_PAGE_MAX)?;
    let filter = filter(given.script_type, given.error);
    let after = given.cursor.map(|Spelled(cursor)| cursor);
    let page = context.client.list_dead(&filter, limit, after.as_ref()).await?;
    let mut jobs: Vec<ListedDead> = page.items.into_iter().map(ListedDead).collect();
    jobs.retain(|letter| letter.belongs().is_within(&context.caller));
    Ok(DeadLetters { jobs, next: page.next.map(|cursor| cursor.to_string()) })
}

fn filter(script_type: Option<Spelled<ScriptType>>, error: Option<String>) -> DeadFilter {
    let script_type = script_type.map(|Spelled(name)| name);
    DeadFilter { script_type, error: error.filter(|text| !text.is_empty()) }
}

/// Dead letters by their ids, or by a filter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// The dead letters, up to 1000.
    #[serde(default)]
    ids: Vec<Spelled<JobId>>,
    /// All that match `script_type` and `error`, in place of `ids`.
    #[serde(default)]
    all: bool,
    /// Only dead letters of this script type.
    script_type: Option<Spelled<ScriptType>>,
    /// Only dead letters whose error contains this text.
    error: Option<String>,
}

/// The number of dead letters that were retried or deleted.
#[derive(Serialize, JsonSchema)]
struct ChangedDead {
    /// The number of those that were.
    done: u64,
    /// The number of those that could not be: another job holds their unique key, a prerequisite failed
    /// or is gone, or they are not dead letters any more.
    left: u64,
    /// The reasons, for dead letters that were named.
    problems: Vec<UnchangedDead>,
}

/// A dead letter that stays as it is.
#[derive(Serialize, JsonSchema)]
struct UnchangedDead {
    /// The id of the job.
    id: String,
    /// The reason.
    problem: String,
}

impl From<DeadTally> for ChangedDead {
    fn from(DeadTally { done, left }: DeadTally) -> Self {
        Self { done, left, problems: Vec::new() }
    }
}

impl Choice {
    /// Returns the filter, if the letters are chosen by one.
    fn filter(&mut self, context: &CallContext) -> Result<Option<DeadFilter>, RpcError> {
        let wrong = |field: &str, message: &str| {
            Err(RpcError::new(code::INVALID_PARAMS, message).with("field", field))
        };
        let has_filter = self.script_type.is_some() || self.error.is_some();
        match (self.all, self.ids.len()) {
            (true, 0) => {}
            (false, 0) => {
                return wrong("ids", "name dead letters in `ids`, or choose them with `all`");
            }
            (true, _) => return wrong("all", "`all` cannot be set beside `ids`"),
            (false, _) if has_filter => {
                return wrong("ids", "a filter needs `all` in place of `ids`");
            }
            (false, 1..=IDS_MAX) => return Ok(None),
            (false, _) => return wrong("ids", "`ids` names more than 1000 dead letters"),
        }
        context.needs_no_bounds("change all dead letters")?;
        Ok(Some(filter(self.script_type.take(), self.error.take())))
    }

    /// Applies an operation to each named dead letter, also after failures.
    async fn each(self, context: &CallContext, by: &JobChange) -> ChangedDead {
        let mut tally = ChangedDead { done: 0, left: 0, problems: Vec::new() };
        for Spelled(id) in self.ids {
            match change(context, id.clone(), by).await {
                Ok(()) => tally.done += 1,
                Err(error) => {
                    tally.left += 1;
                    tally
                        .problems
                        .push(UnchangedDead { id: id.to_string(), problem: error.message });
                }
            }
        }
        tally
    }
}

/// Changes a dead letter that the caller may see.
async fn change(context: &CallContext, id: JobId, change: &JobChange) -> Result<(), RpcError> {
    let id = &context.job_named(id).await?;
    context.may_see(id).await?;
    context.client.dead_letter(id).await?;
    context.client.change_job(id, change).await?;
    Ok(())
}

async fn retry(context: CallContext, mut given: Choice) -> Result<ChangedDead, RpcError> {
    if let Some(filter) = given.filter(&context)? {
        return Ok(context.client.retry_dead(&filter).await?.into());
    }
    Ok(given
        .each(&context, &JobChange::Retry { with_dependents: false, changes: Map::new() })
        .await)
}

async fn delete(context: CallContext, mut given: Choice) -> Result<ChangedDead, RpcError> {
    if let Some(filter) = given.filter(&context)? {
        context.needs(Scope::Admin, "dead.delete with all")?;
        return Ok(context.client.delete_dead(&filter).await?.into());
    }
    Ok(given.each(&context, &JobChange::Delete).await)
}
