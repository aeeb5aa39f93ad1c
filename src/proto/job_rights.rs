//! The rights of a caller to the jobs that a call names, in the form of the scripts of Redis: `shared/rights.lua` compares
//! them with the job that has the id when it is read or changed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::access::Bounds;
use super::job::{Job, JobId};

/// The rights to the jobs that a call names. The default has no limits: the daemon's own duties have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JobRights {
    /// The caller; `None` for one that may see and change every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerRights>,
    /// The graph or batch that the hash of a job must name: a later job with the id of a deleted member does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// The opening of the batch that new jobs join: a later batch with its id has another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening: Option<String>,
    /// Jobs that were checked before the call, with the times of their creation: a later job with the id of one is none.
    #[serde(skip)]
    pub pinned: BTreeMap<JobId, Timestamp>,
}

/// The rights of a caller that may not see and change every job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallerRights {
    /// Its name: jobs with this `caller_id` are its own.
    pub name: String,
    pub sees_all: bool,
    pub changes_all: bool,
    pub bounds: Bounds,
}

impl JobRights {
    /// Returns the rights of the script of a job to the outputs of others, as scripts of Redis read them: those within the
    /// bounds of the token that submitted or corrected the job; empty without bounds.
    pub fn to_outputs(job: &Job) -> String {
        let Some(bounds) = job.bounds.clone().filter(Bounds::limit_jobs) else {
            return String::new();
        };
        let name = job.spec.caller_id.clone();
        let caller = Some(CallerRights { name, sees_all: true, changes_all: false, bounds });
        json!(Self { caller, ..Self::default() }).to_string()
    }

    /// Returns the last argument of the scripts that name jobs for a caller; `id` is the job that is changed.
    pub fn argument(&self, id: Option<&JobId>) -> Cow<'static, str> {
        let pin = id.and_then(|id| Some((id, self.pinned.get(id)?)));
        let has_limits = self.caller.is_some() || self.graph.is_some() || self.opening.is_some();
        if pin.is_none() && !has_limits {
            return "rights".into();
        }
        let mut rights = json!(self);
        if let Some((id, created)) = pin {
            // As `microseconds` of the scripts reads it.
            rights["pinned"] = json!({ "id": id, "created": created.as_millisecond() * 1000 });
        }
        format!("rights{rights}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_without_limits_have_no_text() {
        assert_eq!(JobRights::default().argument(None), "rights");
        let mut of_graph = JobRights { graph: Some("g".to_owned()), ..JobRights::default() };
        assert_eq!(of_graph.argument(None), r#"rights{"graph":"g"}"#);
        let id: JobId = "a".parse().expect("legal");
        of_graph.graph = None;
        of_graph.pinned.insert(id.clone(), "1970-01-01T00:00:01.002003Z".parse().expect("a time"));
        assert_eq!(of_graph.argument(None), "rights");
        let argument = of_graph.argument(Some(&id));
        let pinned = argument.strip_prefix("rights").and_then(|of| serde_json::from_str(of).ok());
        assert_eq!(
            pinned,
            Some(serde_json::json!({ "pinned": { "created": 1_002_000, "id": "a" } }))
        );
    }
}
