//! `dead.*`: dead letters, jobs that used up their attempts: `job.list` and `job.change_many` of these alone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::job_list::{self, JobPage, ListJobs};
use super::job_many::{self, ChangeMany, ChangeWord, ManyChangedDocument};
use super::params::Spelled;
use crate::proto::job::JobId;
use crate::proto::target::ScriptType;
use crate::store::Cursor;

methods! {
    /// Lists dead letters, the newest first, page by page.
    "dead.list", Scope::Read => list;
    /// Runs dead letters again: those that are named, or all that match a filter.
    "dead.retry", Scope::Operate => |context, given| change(context, ChangeWord::Retry, given);
    /// Deletes dead letters: those that are named, or, with the scope admin, all that match a filter.
    "dead.delete", Scope::Operate => |context, given| change(context, ChangeWord::Delete, given);
}

/// A page of dead letters to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListDead {
    /// Only dead letters of this script type.
    script_type: Option<Spelled<ScriptType>>,
    /// Only dead letters whose error contains this text.
    error: Option<String>,
    /// The size of the page, up to 1000; 50 without it.
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<Spelled<Cursor>>,
    /// Only dead letters whose error is of this kind, as in job.list.
    kind: Option<String>,
}

async fn list(context: CallContext, given: ListDead) -> Result<JobPage, RpcError> {
    let mut dead = ListJobs::of_dead(given.script_type, given.error, given.kind);
    (dead.limit, dead.cursor) = (given.limit, given.cursor);
    job_list::list(context, dead).await
}

/// Dead letters by their ids, or by a filter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeadChoice {
    /// The dead letters, up to 1000.
    #[serde(default)]
    ids: Vec<Spelled<JobId>>,
    /// All that match `script_type`, `error` and `kind`, in place of `ids`.
    #[serde(default)]
    all: bool,
    /// Only dead letters of this script type.
    script_type: Option<Spelled<ScriptType>>,
    /// Only dead letters whose error contains this text.
    error: Option<String>,
    /// Only dead letters whose error is of this kind, as in job.list.
    kind: Option<String>,
    /// Changes nothing, and returns the dead letters.
    #[serde(default)]
    dry_run: bool,
}

async fn change(
    context: CallContext,
    by: ChangeWord,
    given: DeadChoice,
) -> Result<ManyChangedDocument, RpcError> {
    let DeadChoice { ids, all, script_type, error, kind, dry_run } = given;
    let has_filter = script_type.is_some() || error.is_some() || kind.is_some();
    if has_filter && !all {
        return Err(RpcError::wrong("ids", "a filter needs `all` in place of `ids`"));
    }
    if all && matches!(by, ChangeWord::Delete) {
        context.needs(Scope::Admin, "dead.delete with all")?;
    }
    let filter = all.then(|| ListJobs::of_dead(script_type, error, kind));
    job_many::change(context, ChangeMany::of_dead(by, ids, filter, dry_run), true).await
}
