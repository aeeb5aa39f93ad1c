//! `job.log`: the log of a job.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::follow::{LoggedLine, StreamPlace};
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::params::{Spelled, page_size};
use crate::proto::job::JobReference;
use crate::store::LogLine;

/// The maximum number of lines of a log that one call returns.
const LINES_MAX: usize = 1000;

/// A part of a job's log.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadLog {
    /// The id of the job.
    id: Spelled<JobReference>,
    /// Only lines after the one with this id, such as `next` of the part before.
    after: Option<String>,
    /// Only lines since this time.
    since: Option<Spelled<Timestamp>>,
    /// The maximum number of lines, up to 1000; 1000 without it.
    limit: Option<usize>,
}

/// Lines of a job's log.
#[derive(Serialize, JsonSchema)]
pub(super) struct LogPart {
    /// The id of the job.
    id: String,
    /// The lines.
    lines: Vec<LoggedLine>,
    /// The value of `after` for the next part: set if there may be more already.
    next: Option<String>,
    /// The text after the last line that has no line end yet, such as a question; left out if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    unfinished_line: String,
    /// True if the job has ended or was deleted: without `next` these are its last lines.
    ended: bool,
}

pub(super) async fn log(context: CallContext, given: ReadLog) -> Result<LogPart, RpcError> {
    let limit = page_size(given.limit.or(Some(LINES_MAX)), LINES_MAX)?;
    let after =
        given.after.or_else(|| given.since.map(|Spelled(time)| LogLine::place_before(time)));
    if after.as_ref().is_some_and(|place| place.parse::<StreamPlace>().is_err()) {
        let message = "`after` is not the id of a log line, such as 1790000000000-0";
        return Err(RpcError::wrong("after", message));
    }
    let seen = context.seen(given.id).await?;
    // The log is complete before a job has ended.
    let state = context.client.state_and_unfinished(&seen.id).await?;
    let lines = context.client.get_job_logs(&seen.id, after.as_deref(), limit).await;
    let lines = context.still(&seen, lines).await?;
    let next = (lines.len() == limit).then(|| lines.last().map(|line| line.id.clone())).flatten();
    Ok(LogPart {
        id: seen.id.to_string(),
        lines: lines.into_iter().map(LoggedLine::from).collect(),
        next,
        ended: state.as_ref().is_none_or(|(status, _)| status.is_terminal()),
        unfinished_line: state.map(|(_, text)| text).unwrap_or_default(),
    })
}
