//! The rights of a caller to the jobs that a call names, in the form of the scripts of Redis: `shared/rights.lua` compares
//! them with the job that has the id when it is read or changed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;

use super::access::Bounds;

/// The rights to the jobs that a call names. The default has no limits: the daemon's own duties have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JobRights {
    /// The caller; `None` for one that may see and change every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerRights>,
    /// The graph or batch that the hash of a job must name: a later job with the id of a deleted member does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
}

/// The rights of a caller that may not see and change every job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallerRights {
    /// Its name: jobs with this `caller_id` are its own.
    pub name: String,
    /// It may see the jobs of others.
    pub sees_all: bool,
    /// It may change the jobs of others.
    pub changes_all: bool,
    /// The bounds of its jobs.
    pub bounds: Bounds,
}

impl JobRights {
    /// Returns the last argument of the scripts that name jobs for a caller.
    pub fn argument(&self) -> Cow<'static, str> {
        if *self == Self::default() {
            return "rights".into();
        }
        format!("rights{}", json!(self)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_without_limits_have_no_text() {
        assert_eq!(JobRights::default().argument(), "rights");
        let of_graph = JobRights { caller: None, graph: Some("g".to_owned()) };
        assert_eq!(of_graph.argument(), r#"rights{"graph":"g"}"#);
    }
}
