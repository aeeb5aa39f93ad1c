//! The caller of the API and its rights.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A right of a caller. Each method needs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Reads jobs, queues, actors and the rest.
    Read,
    /// Submits jobs; stops, retries and deletes those of one's own.
    Submit,
    /// Changes any job, queue, actor or periodic job.
    Operate,
    /// Does everything, including what cannot be undone for many jobs.
    Admin,
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns true if `scope` is one of them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// All scopes.
    pub fn all() -> Self {
        [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin].into_iter().collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

/// The bounds of the jobs of a caller. `None` sets none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The script types of its jobs.
    pub types: Option<BTreeSet<String>>,
    /// The groups of its jobs.
    pub groups: Option<BTreeSet<String>>,
    /// The callers that its jobs may name, besides its own name.
    pub callers: Option<BTreeSet<String>>,
    /// The contexts of its jobs and objects.
    pub contexts: Option<BTreeSet<String>>,
}

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
