//! `dead.*`: dead letters, jobs that used up their attempts: `job.list` and `job.change_many` of these alone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::job_list::{self, JobPage, ListJobs, ListPlace};
use super::job_many::{self, ChangeMany, ChangeWord, ManyChangedDocument};
use super::{CallContext, Result, RpcError, Scope};
use crate::proto::job::JobReference;
use crate::proto::job_filter::Filtered;
use crate::store::Cursor;

methods! {
    /// Lists dead letters, the newest first, page by page.
    "dead.list", Scope::Read => list;
    /// Runs dead letters again: those that are named, or all that match a filter.
    "dead.retry", Scope::Operate => |context, params| change(context, ChangeWord::Retry, params);
    /// Deletes dead letters: those that are named, or, with the scope admin, all that match a filter.
    "dead.delete", Scope::Operate => |context, params| change(context, ChangeWord::Delete, params);
}

async fn list(context: CallContext, mut params: ListJobs) -> Result<JobPage> {
    params.filter = params.filter.with("dead", "true");
    job_list::list(context, params).await
}

/// Dead letters by their ids, or by a filter.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeadChoice {
    /// The dead letters, up to 1000.
    #[serde(default)]
    ids: Vec<JobReference>,
    /// All that match the filters, in place of `ids`.
    #[serde(default)]
    all: bool,
    /// Changes nothing, and returns the dead letters.
    #[serde(default)]
    dry_run: bool,
    /// With `all`: the number of dead letters after which the call ends.
    limit: Option<usize>,
    /// With `all`: the `next` of the call before.
    cursor: Option<Cursor>,
}

async fn change(
    context: CallContext,
    by: ChangeWord,
    Filtered { filter, rest }: Filtered<DeadChoice>,
) -> Result<ManyChangedDocument> {
    let DeadChoice { ids, all, dry_run, limit, cursor } = rest;
    if !filter.is_empty() && !all {
        return Err(RpcError::wrong("ids", "a filter needs `all` in place of `ids`"));
    }
    if all && matches!(by, ChangeWord::Delete) {
        context.needs(Scope::Admin, "dead.delete with all")?;
    }
    let filter = filter.with("dead", "true");
    let filter = all.then_some(ListJobs { filter, rest: ListPlace { limit, cursor } });
    job_many::change(context, ChangeMany::of_dead(by, ids, filter, dry_run), true).await
}
