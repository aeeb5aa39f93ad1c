//! The rights of a caller that corrects a job: to its settings as they were, and as they become.

use serde_json::{Map, Value};

use super::access::CheckedJob;
use super::{CallContext, Result};
use crate::proto::job::{Job, JobId};

impl CallContext {
    /// Refuses a correction of a job that the caller may not change, or whose new settings it may not use. Returns the job,
    /// if it was looked at: [`Client::pinned`] must follow, since a later job with its id was not.
    ///
    /// [`Client::pinned`]: crate::client::Client::pinned
    pub(super) async fn may_correct(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
        doing: &str,
    ) -> Result<CheckedJob> {
        self.may_change(id, doing).await?;
        if changes.is_empty() {
            return Ok((id.clone(), None));
        }
        let before = self.visible(id).await?;
        let job = self.client.jobs().corrected(&before, changes).await?;
        self.keeps_variables_masked(&before, &job)?;
        self.takes_nothing_of_its_caller(&before, &job)?;
        self.stays_within(&job)?;
        self.reaches_nothing_beyond(&job)?;
        self.has_type(&job)?;
        Ok((before.id, before.created_at))
    }

    /// Refuses a correction of a job of another caller, for which the caller may submit none, that would reach what this other
    /// caller alone has: its secrets, which the claim of the job hands out, and its log files.
    fn takes_nothing_of_its_caller(&self, before: &Job, after: &Job) -> Result<()> {
        if self.may_submit_as(&before.spec.caller_id) {
            return Ok(());
        }
        let field = if after.spec.log_path != before.spec.log_path {
            "log_path"
        } else if !after.spec.secrets.is_empty() {
            "secrets"
        } else {
            return Ok(());
        };
        let other = before.spec.caller_id.escape_debug();
        let refused = self.may_not(format!("correct a job of caller_id `{other}` with {field}"));
        Err(refused.with("field", field))
    }

    /// Returns whether a job would give variables of a published script, which the caller may not read, to another script.
    pub(super) fn tells_variables(&self, published: &Job, of: &Job) -> bool {
        let (before, after) = (&published.spec, &of.spec);
        let keeps = |(name, value)| before.env_vars.get(name) == Some(value);
        // A copy that does not name the published script is no run of it: its variables are not masked.
        let is_another =
            before.uses.is_some() && (after.uses.is_none() || before.script != after.script);
        is_another && !self.caller.operates() && after.env_vars.iter().any(keeps)
    }

    fn keeps_variables_masked(&self, before: &Job, after: &Job) -> Result<()> {
        if !self.tells_variables(before, after) {
            return Ok(());
        }
        let what = "give another script the variables of a published script: set env_vars too";
        Err(self.may_not(what).with("field", "env_vars"))
    }
}
