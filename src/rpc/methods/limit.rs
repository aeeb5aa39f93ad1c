//! `limit.list`: the limits. `stats.get`: the numbers of jobs by script type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::{Nothing, PastTime, check_period};
use super::{CallContext, Result, RpcError, Scope, code};
use crate::client::{AskedPlaces, LimitDocument, PeriodStats, StatsBy, StatsDocument};
use crate::proto::target::ScriptType;

methods! {
    /// Lists the limits, the jobs that run under each and the jobs that it holds.
    "limit.list", Scope::Read => list;
    /// Returns how many jobs of each type came and ended, and how long they waited and ran: since the first of each
    /// type, or in a period of the last 30 days; or failures and times of the latest ended jobs by machine or actor.
    "stats.get", Scope::Read => stats;
}

/// The limits.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct LimitList {
    /// Each limit, and each value that it counts separately.
    pub(crate) limits: Vec<LimitDocument>,
}

async fn list(context: CallContext, _: Nothing) -> Result<LimitList> {
    context.needs_no_bounds("list the limits")?;
    let limits = context.client.system().limits(&context.config.limits).await?;
    Ok(LimitList { limits })
}

/// A period of the last 30 days.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatsPeriod {
    /// Only what was counted from this time on: RFC 3339, or as hero stats has it, in UTC: 24h (ago), 09:00, yesterday
    /// (its start), yesterday 18:00, friday. The period begins at a sample: of every minute of the last hour, of every
    /// hour of the last 30 days. Without it, since the first job of each type.
    since: Option<PastTime>,
    /// Only what was counted until this time; needs `since`.
    until: Option<PastTime>,
    /// Counts ended jobs by the machine, or the actor, that ran them: the latest that can be read within two seconds, of those
    /// that have not expired. The period is then of their ends, and needs no sample.
    by: Option<StatsBy>,
    /// Only this script type.
    script_type: Option<ScriptType>,
}

async fn stats(context: CallContext, params: StatsPeriod) -> Result<StatsDocument> {
    context.needs_whole_types("read the numbers of script types")?;
    let time = |of: Option<PastTime>| of.map(|PastTime(time)| time);
    let script_type = params.script_type;
    let (since, until) = (time(params.since), time(params.until));
    check_period(since, until)?;
    if let Some(by) = params.by {
        let asked = AskedPlaces { by, script_type, since, until };
        let _place = context.may_search().await?;
        return Ok(context.client.stats().by(&asked, |job| context.caller.sees(job)).await?);
    }
    let mut stats = match (since, until) {
        (None, None) => context.client.stats().get().await?,
        (Some(from), to) => {
            let period = context.client.stats().between(from, to).await?;
            let none = || RpcError::new(code::NOT_FOUND, PeriodStats::NONE);
            period.ok_or_else(none)?.document()
        }
        (None, Some(_)) => {
            let message = "`until` ends a period that `since` begins: give both";
            return Err(RpcError::wrong("since", message));
        }
    };
    if let Some(types) = &context.caller.bounds.types {
        stats.types.retain(|of| types.contains(&of.script_type));
    }
    if let Some(only) = script_type {
        stats.types.retain(|of| of.script_type == only.as_str());
    }
    Ok(stats)
}
