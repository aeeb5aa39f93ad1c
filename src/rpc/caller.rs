//! The caller of the API and its rights.

pub use crate::proto::access::{Bounds, Scope, Scopes};
use crate::proto::job_rights::{CallerRights, JobRights};

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its name: of a token, a user of this machine, or a public key. It becomes `caller_id` of its jobs.
    pub name: String,
    /// Its rights.
    pub scopes: Scopes,
    /// The bounds of its jobs.
    pub bounds: Bounds,
}

impl Caller {
    /// Returns whether it may read jobs of others.
    pub fn reads(&self) -> bool {
        self.scopes.has(Scope::Read)
    }

    /// Returns whether it may change jobs of others.
    pub fn operates(&self) -> bool {
        self.scopes.has(Scope::Operate) || self.scopes.has(Scope::Admin)
    }

    /// Returns its rights to the jobs that its calls name.
    pub fn job_rights(&self) -> JobRights {
        let (sees_all, changes_all) = (self.reads(), self.operates());
        if sees_all && changes_all && self.bounds == Bounds::default() {
            return JobRights::default();
        }
        let (name, bounds) = (self.name.clone(), self.bounds.clone());
        let caller = Some(CallerRights { name, sees_all, changes_all, bounds });
        JobRights { caller, ..JobRights::default() }
    }
}
