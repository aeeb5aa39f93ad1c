//! Handles with the rights of a caller: what they name beyond these is not found.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::Store;
use crate::proto::job::JobId;
use crate::proto::job_rights::JobRights;

impl Store {
    /// Sees and changes the jobs that a call names with these rights: a job beyond them is none.
    #[must_use]
    pub fn acting_as(mut self, rights: Arc<JobRights>) -> Self {
        self.rights = rights;
        self
    }

    /// Changes these jobs only while they are those that were created at these times: their ids may be used again.
    #[must_use]
    pub fn pinned(&self, jobs: BTreeMap<JobId, Timestamp>) -> Self {
        let rights = JobRights { pinned: jobs, ..JobRights::clone(&self.rights) };
        self.clone().acting_as(rights.into())
    }

    /// Returns whether a job may get corrections that were checked for a caller: the checked job alone.
    pub fn may_correct(&self, id: &JobId) -> bool {
        self.rights.caller.is_none() || self.rights.pinned.contains_key(id)
    }

    /// Adds jobs to a batch of this opening alone, and opens it so: a later batch with its id has another.
    #[must_use]
    pub fn adding_to(&self, opening: &str) -> Self {
        let opening = Some(opening.to_owned());
        let rights = JobRights { opening, ..JobRights::clone(&self.rights) };
        self.clone().acting_as(rights.into())
    }

    /// Changes no job but those whose hash names this graph or batch.
    #[must_use]
    pub fn within_graph(&self, graph: &JobId) -> Self {
        let rights = JobRights { graph: Some(graph.to_string()), ..JobRights::clone(&self.rights) };
        self.clone().acting_as(rights.into())
    }
}
