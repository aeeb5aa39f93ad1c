//! `job.edit`: changes a job that has not started.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::method::CallContext;
use super::super::rpc_error::{RpcError, code};
use super::access::CheckedJob;
use super::changed_job::JobChangeResult;
use super::params::Spelled;
use crate::client::JobValues;
use crate::proto::job::{JobId, JobReference, JobStatus};
use crate::proto::target::IllegalName;
use crate::store::JobEdit;

/// A job to change. Omitted settings stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditOne {
    /// The id of the job.
    id: Spelled<JobReference>,
    /// Its priority: 0 urgent, 1 normal, 2 background.
    priority: Option<u8>,
    /// The group that may run it; empty for any group. A job for one instance is then for none.
    group: Option<String>,
    /// The earliest time to start.
    run_at: Option<Spelled<Timestamp>>,
    /// Further settings: members as in a job to submit, such as a corrected `script`; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
}

/// New values of jobs. Omitted values stay as they are.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EditedValues {
    /// The priority: 0 urgent, 1 normal, 2 background.
    priority: Option<u8>,
    /// The group that may run them; empty for any group. A job for one instance is then for none.
    group: Option<String>,
    /// The earliest time to start.
    run_at: Option<Spelled<Timestamp>>,
    /// Further settings: members as in a job to submit, such as a corrected `script`; null removes one.
    #[serde(default)]
    changes: Map<String, Value>,
}

impl EditedValues {
    /// Returns the change; there must be one.
    pub(super) fn edit(self) -> Result<JobValues, RpcError> {
        let group = self.group.map(|name| (!name.is_empty()).then(|| name.parse()).transpose());
        let priority = self.priority.map(|number| number.to_string().parse());
        let edit = JobEdit {
            priority: priority.transpose().map_err(|error: IllegalName| error)?,
            group: group.transpose().map_err(|error: IllegalName| error)?,
            run_at: self.run_at.map(|Spelled(time)| time),
            ..JobEdit::default()
        };
        let values = JobValues { place: edit, changes: self.changes };
        if values == JobValues::default() {
            let message = "the edit changes nothing: give priority, group, run_at or changes";
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        Ok(values)
    }
}

pub(super) async fn edit(
    context: CallContext,
    given: EditOne,
) -> Result<JobChangeResult, RpcError> {
    let EditOne { id, priority, group, run_at, mut changes } = given;
    let id = context.job_named(&id.0).await?;
    context.keep_groups(&mut changes);
    let edit = EditedValues { priority, group, run_at, changes }.edit()?;
    let client = context.client.pinned([may_edit(&context, &id, &edit).await?]);
    let state = client.edit_job(&id, &edit).await?;
    // It is changed: a job that cannot be read then is no error.
    let job = if state == JobStatus::Scheduled { client.get_job(&id).await.ok() } else { None };
    let run_at = job.and_then(|job| job.spec.run_at).map(|time| format!("{time:.3}"));
    Ok(JobChangeResult { run_at, ..JobChangeResult::new(&id, state.as_str()) })
}

/// Refuses an edit of a job that the caller may not change, or that takes it beyond the caller's bounds. Returns the job as
/// [`CallContext::may_correct`] does.
pub(super) async fn may_edit(
    context: &CallContext,
    id: &JobId,
    values: &JobValues,
) -> Result<CheckedJob, RpcError> {
    let checked = context.may_correct(id, &values.changes, "edit").await?;
    let Some(group) = &values.place.group else { return Ok(checked) };
    let mut job = context.visible(id).await?;
    job.spec.group.clone_from(group);
    job.spec.instance = None;
    context.stays_within(&job)?;
    // The first check counts: a later job did not have it.
    Ok((checked.0, checked.1.or(job.created_at)))
}
