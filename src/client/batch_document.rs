//! Batches as JSON: each job an object, its members named as the fields of the hash.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::proto::job::{InvalidJob, Job};
use crate::proto::json_text::{refuse_wide_integers, without_mark};
use crate::proto::units::parse_duration;

/// Reads the members of a job from a line of a batch.
///
/// # Errors
/// [`InvalidJob`] says what is wrong with the line.
pub fn members_of_line(line: &[u8]) -> Result<Map<String, Value>, InvalidJob> {
    let line = without_mark(line);
    refuse_wide_integers(line)
        .map_err(|why| InvalidJob::new("the line", format!("cannot be read: {why}")))?;
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(InvalidJob::new("the line", "is not a JSON object")),
        Err(error) => Err(InvalidJob::new("the line", format!("is not JSON: {error}"))),
    }
}

/// Reads a job to submit from its members, with the values of the options of `hero submit`, and `delay` as there.
///
/// # Errors
/// [`InvalidJob`] names the first member that is not legal.
pub fn job_of_members(mut members: Map<String, Value>) -> Result<Job, InvalidJob> {
    let Some(delay) = members.remove("delay") else { return Job::from_json(&members) };
    let mut job = Job::from_json(&members)?;
    let wrong = |why: String| InvalidJob::new("delay", why);
    if job.spec.run_at.is_some() {
        return Err(wrong("cannot be set beside `at`".to_owned()));
    }
    let delay = parse_duration(delay.as_str().unwrap_or_default());
    job.set_delay(delay.map_err(|error| wrong(error.to_string()))?, Timestamp::now())?;
    Ok(job)
}
