//! `limit.list`: the limits. `stats.get`: the numbers of jobs by script type.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::caller::Scope;
use super::super::error::RpcError;
use super::super::method::{CallContext, Method};
use super::params::Nothing;
use crate::client::{LimitDocument, StatsDocument};

pub(super) fn methods() -> [Method; 2] {
    [
        Method::new(
            "limit.list",
            Scope::Read,
            "Lists the limits, the jobs that run under each and the jobs that it holds.",
            list,
        ),
        Method::new(
            "stats.get",
            Scope::Read,
            "Returns how many jobs of each type came and ended, and how long they waited and ran.",
            stats,
        ),
    ]
}

/// The limits.
#[derive(Serialize, JsonSchema)]
struct LimitList {
    /// Each limit, and each value that it counts separately.
    limits: Vec<LimitDocument>,
}

async fn list(context: CallContext, _: Nothing) -> Result<LimitList, RpcError> {
    context.needs_no_bounds("list the limits")?;
    let limits = context.client.limit_documents(&context.config.limits).await?;
    Ok(LimitList { limits })
}

async fn stats(context: CallContext, _: Nothing) -> Result<StatsDocument, RpcError> {
    context.needs_whole_types("read the numbers of script types")?;
    let mut stats = context.client.stats().await?;
    if let Some(types) = &context.caller.bounds.types {
        stats.types.retain(|of| types.contains(&of.script_type));
    }
    Ok(stats)
}
