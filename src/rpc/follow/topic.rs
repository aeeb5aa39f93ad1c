//! The things that can be followed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::super::caller::Caller;
use super::place::StreamPlace;
use crate::proto::job::JobId;

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
    /// The thing to follow.
    pub(crate) topic: FollowTopic,
    /// The sequence number to continue after.
    pub(crate) since: Option<StreamPlace>,
    /// The only script types whose statistics the caller may see.
    pub(crate) types: Option<BTreeSet<String>>,
    /// The caller, if it has bounds, which a job may leave while it is followed.
    pub(crate) bound: Option<Arc<Caller>>,
}
