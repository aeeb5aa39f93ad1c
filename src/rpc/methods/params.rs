//! Parameters that several methods have in common.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Result, RpcError};
use crate::proto::job::JobReference;
use crate::proto::spoken_time::{PastTimeError, parse_past_time};
use crate::proto::word_table::{from_text, inline_schema};

/// One name, or a list of some.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

inline_schema!(OneOrMany, { "type": ["string", "array"], "items": { "type": "string" }, "minItems": 1 });

/// A time as people write it for a search, in UTC.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastTime(pub(super) Timestamp);

impl FromStr for PastTime {
    type Err = PastTimeError;

    fn from_str(text: &str) -> Result<Self, PastTimeError> {
        parse_past_time(text, &TimeZone::UTC, Timestamp::now()).map(Self)
    }
}

/// A time of RFC 3339.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time(pub(super) Timestamp);

impl FromStr for Time {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse().map(Self)
    }
}

from_text!(PastTime, Time);
inline_schema!(PastTime);
inline_schema!(Time);

/// No parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// One job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneJob {
    /// The id of the job.
    pub(super) id: JobReference,
}

/// Refuses to delete all jobs without a confirmation.
pub(super) fn confirmed(method: &str, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let message =
        format!("{method} deletes every job that is not running; confirm with yes = true");
    Err(RpcError::wrong("yes", message))
}

/// The time to wait without `wait`.
const WAIT_S: f64 = 60.0;
const WAIT_MAX_S: f64 = 3600.0;

/// Rejects a period that ends before it begins: it holds nothing.
pub(super) fn check_period(since: Option<Timestamp>, until: Option<Timestamp>) -> Result<()> {
    if since.zip(until).is_some_and(|(since, until)| since > until) {
        return Err(RpcError::wrong("until", "the period ends before it begins"));
    }
    Ok(())
}

/// Returns the time to wait, of a number of seconds.
pub(in crate::rpc) fn patience(wait: Option<f64>) -> Result<Duration> {
    let seconds = wait.unwrap_or(WAIT_S);
    if (0.0..=WAIT_MAX_S).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let message = format!("cannot wait {seconds} seconds: `wait` is from 0 to {WAIT_MAX_S}");
    Err(RpcError::wrong("wait", message))
}

pub(super) fn page_size(limit: Option<usize>, most: usize) -> Result<usize> {
    let limit = limit.unwrap_or(50);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("a page cannot have {limit} entries: `limit` is from 1 to {most}");
    Err(RpcError::wrong("limit", message))
}
