//! Copies of jobs, with changes.

use serde_json::{Map, Value};

use super::{Client, ClientError};
use crate::proto::job::{Job, JobId};

/// Fields that a copy does not take over: each job has its own.
const OF_ONE_JOB: [&str; 4] = ["id", "unique_key", "run_at", "signature"];

impl Client {
    /// Returns a copy of a job with a new id, without its unique key, its time and its signature, and with these changes:
    /// members named as the fields of the hash, where null takes one away. It is not submitted.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if the job or a change is not legal.
    pub async fn clone_of(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<Job, ClientError> {
        let mut without: Vec<&str> = OF_ONE_JOB.to_vec();
        let job = self.get_job(id).await?;
        if let Some(used) = &job.spec.uses {
            let names_another = changes.get("uses").is_some_and(|uses| !uses.is_null());
            if names_another {
                // The script that is named instead gives its own.
                without.extend(["script", "script_digest", "script_type", "extension"]);
            } else if changes.contains_key("uses")
                || changes.contains_key("script")
                || self.store.published_script(used).await?.is_none()
            {
                without.extend(["uses", "script_digest"]);
            }
        }
        Ok(job.copy_with(changes, &without)?)
    }
}
