//! The things that can be followed, and places in them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use super::super::caller::Caller;
use crate::proto::job::JobId;
use crate::proto::word_table::{from_text, inline_schema};

/// A thing that is followed. All that follow the same one share a reader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FollowTopic {
    /// The states and the log of a job, with the time of its creation: a later job with its id is another one.
    Job(JobId, Option<Timestamp>),
    /// The transitions of all jobs.
    Events,
    /// The counters and times of all types.
    Stats,
}

/// A subscription that its caller may have.
#[derive(Debug)]
pub(crate) struct Following {
    pub(crate) topic: FollowTopic,
    /// The sequence number to continue after.
    pub(crate) since: Option<StreamPlace>,
    /// The caller. If it has bounds, a job may leave them while it is followed, and statistics are of its types.
    pub(crate) caller: Arc<Caller>,
}

/// The place of an entry in a stream of Redis, which is the sequence number of notifications: milliseconds by Redis's clock, and
/// a number within that millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct StreamPlace(u64, u64);

impl StreamPlace {
    /// Reads the place of an entry that Redis gave.
    pub(super) fn of(text: &str) -> Self {
        text.parse().unwrap_or_default()
    }
}

from_text!(StreamPlace);
inline_schema!(StreamPlace);

impl FromStr for StreamPlace {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |(time, number): (&str, &str)| Some((time.parse().ok()?, number.parse().ok()?));
        let parsed = text.split_once('-').and_then(read);
        let (time, number) = parsed.ok_or("expected a sequence number such as 1790000000000-0")?;
        Ok(Self(time, number))
    }
}

impl fmt::Display for StreamPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}
