//! Batches as JSON: each job an object, its members named as the fields of the hash.

use serde_json::Value;

use crate::proto::job::{InvalidJob, Job};
use crate::proto::json_text::{refuse_wide_integers, without_mark};

/// Reads a job to submit from a line of a batch.
///
/// # Errors
/// [`InvalidJob`] says what is wrong with the line, or names the first member that is not legal.
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
