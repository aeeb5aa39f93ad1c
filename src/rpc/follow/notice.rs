//! The notifications of subscriptions, as their clients get them.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::rpc_error::RpcError;
use crate::client::StatsDocument;
use crate::proto::job::JobStatus;
use crate::store::{JobEvent, LogLine};

/// A line of a log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct LoggedLine {
    /// Its place in the log.
    id: String,
    /// 1 for standard output, 2 for standard error, 3 for progress.
    fd: u8,
    /// The text, without its line end.
    line: String,
    /// The progress from 0 to 1, if the line is about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
    /// The time when it was written, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// True for a line of the job's output, which has it as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output: bool,
}

impl From<LogLine> for LoggedLine {
    fn from(of: LogLine) -> Self {
        let time = of.time().map(|time| format!("{time:.3}"));
        let LogLine { id, fd, line, progress, output } = of;
        Self { id, fd, line, progress, time, output }
    }
}

/// The members of every notification.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct NoticeHead {
    /// The id of the subscription.
    pub(super) subscription: String,
    /// The sequence number: `since` of a subscription that continues after this notification.
    pub(super) seq: String,
    /// The reason why nothing can be read, for example that Redis cannot be reached; empty once it can be
    /// read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// The next part of a job's course.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct JobNotice {
    #[serde(flatten)]
    pub(super) head: NoticeHead,
    /// The state of the job, if the subscription has not told it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<JobStatus>,
    /// The next lines of its log, progress included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lines: Vec<LoggedLine>,
    /// The text after the last line that has no line end yet, such as a question, whenever it changes; empty once
    /// there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unfinished_line: Option<String>,
    /// True in the last notification: the job has ended, or was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) ended: bool,
    /// The reason of an end before the job's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<RpcError>,
}

/// The next events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EventsNotice {
    #[serde(flatten)]
    pub(super) head: NoticeHead,
    /// The events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<JobEvent>,
}

/// The statistics after a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StatsNotice {
    #[serde(flatten)]
    pub(super) head: NoticeHead,
    /// The counters and times of each type, as stats.get returns them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<StatsDocument>,
}
