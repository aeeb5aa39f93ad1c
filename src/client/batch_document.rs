//! Batches as JSON: each job an object, its members named as the fields of the hash.

use serde_json::Value;

use super::documents::{BatchDocument, RefusedDocument};
use super::{Client, ClientError};
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::proto::json_text::{refuse_wide_integers, without_mark};

/// Reads a job to submit from a JSON object.
///
/// # Errors
/// [`InvalidJob`] names the first member that is not legal.
pub fn job_of_json(value: &Value) -> Result<Job, InvalidJob> {
    match value {
        Value::Object(object) => Job::from_json(object),
        _ => Err(InvalidJob::new("the job", "is not a JSON object")),
    }
}

/// Reads a job to submit from a line of a batch.
///
/// # Errors
/// As [`job_of_json`].
pub fn job_of_line(line: &[u8]) -> Result<Job, InvalidJob> {
    let line = without_mark(line);
    refuse_wide_integers(line)
        .map_err(|why| InvalidJob::new("the line", format!("cannot be read: {why}")))?;
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => Job::from_json(&object),
        Ok(_) => Err(InvalidJob::new("the line", "is not a JSON object")),
        Err(error) => Err(InvalidJob::new("the line", format!("is not JSON: {error}"))),
    }
}

impl Client {
    /// Submits a batch of jobs, each as JSON: each is accepted or rejected by itself, or all or none.
    ///
    /// # Errors
    /// As [`Client::submit_all`] and [`Client::submit_all_or_none`], except for one job that is rejected.
    pub async fn submit_batch_documents(
        &self,
        jobs: &[Value],
        all_or_none: bool,
    ) -> Result<BatchDocument, ClientError> {
        let (mut good, mut lines, mut answer) = (Vec::new(), Vec::new(), BatchDocument::default());
        for (line, value) in (1..).zip(jobs) {
            match self.checked_document(value).await {
                Ok(job) => {
                    good.push(job);
                    lines.push(line);
                }
                Err(ClientError::Store(error)) => return Err(error.into()),
                Err(error) => answer.refuse(line, &error),
            }
        }
        if all_or_none && !answer.refused.is_empty() {
            return Ok(answer);
        }
        let results = if all_or_none {
            match self.submit_all_or_none(&good).await {
                Ok(ids) => ids.into_iter().map(Ok).collect(),
                Err(ClientError::Refused { place, error, .. }) => {
                    answer.refuse(lines.get(place).copied().unwrap_or_default(), &error);
                    Vec::new()
                }
                Err(error) => return Err(error),
            }
        } else {
            self.submit_all(&good).await?
        };
        for (line, result) in lines.into_iter().zip(results) {
            answer.add(line, result);
        }
        answer.refused.sort_by_key(|refused| refused.line);
        Ok(answer)
    }

    async fn checked_document(&self, value: &Value) -> Result<Job, ClientError> {
        let mut job = job_of_json(value)?;
        self.resolve_script(&mut job).await?;
        self.check(&job)?;
        Ok(job)
    }
}

impl BatchDocument {
    fn add(&mut self, line: u64, result: Result<JobId, ClientError>) {
        match result {
            Ok(id) => self.ids.push(id.to_string()),
            Err(error) => self.refuse(line, &error),
        }
    }

    fn refuse(&mut self, line: u64, error: &ClientError) {
        self.refused.push(RefusedDocument { line, error: error.to_string() });
    }
}
