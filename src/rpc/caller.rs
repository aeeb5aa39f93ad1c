//! The caller of the API and its rights.

pub use crate::proto::access::{Bounds, Scope, Scopes};

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
