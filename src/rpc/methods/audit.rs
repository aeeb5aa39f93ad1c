//! `audit.list`: the changes that people and programs made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::{PastTime, check_period, page_size};
use super::{CallContext, Result, Scope};
use crate::client::AuditFilter;
use crate::proto::audit::AuditRecord;

const RECORDS_MAX: usize = 20_000;

methods! {
    /// Lists the changes that people and programs made, the newest first: who, what, to what, from where, when.
    "audit.list", Scope::Admin => list;
}

/// The changes to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListAudit {
    /// Only changes since then: RFC 3339, or as hero audit has it, in UTC: 24h (ago), 09:00, yesterday 18:00, friday.
    since: Option<PastTime>,
    /// Only changes until then.
    until: Option<PastTime>,
    /// Only changes by people and programs whose name contains this text.
    who: Option<String>,
    /// Only this change, such as `job.stop`, or all changes of one noun, such as `job`.
    what: Option<String>,
    /// The maximum number of changes, up to 20000; 50 without it.
    limit: Option<usize>,
}

/// Changes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct AuditList {
    /// The changes, the newest first.
    pub(crate) records: Vec<AuditRecord>,
}

async fn list(context: CallContext, params: ListAudit) -> Result<AuditList> {
    context.needs_no_bounds("read the record of changes")?;
    let time = |of: Option<PastTime>| of.map(|PastTime(time)| time);
    let filter = AuditFilter {
        since: time(params.since),
        until: time(params.until),
        who: params.who,
        what: params.what,
        limit: page_size(params.limit, RECORDS_MAX)?,
    };
    check_period(filter.since, filter.until)?;
    Ok(AuditList { records: context.client.audit().list(&filter).await? })
}
