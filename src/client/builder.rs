//! Builds a job from named settings, one method for each row of `proto/job/settings.rs`; or from JSON, its members named as the
//! fields of the hash.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::proto::job::{Give, InvalidJob, Job, JobSpec, job_settings};
use crate::proto::json_text::{refuse_wide_integers, without_mark};
use crate::proto::units::parse_duration;

/// A job under construction. Each method takes text or numbers as people write them;
/// [`JobBuilder::build`] reports the first that is not legal.
#[derive(Debug, Clone)]
pub struct JobBuilder {
    spec: JobSpec,
    delay: Option<Duration>,
    /// The first error.
    wrong: Option<InvalidJob>,
}

macro_rules! methods {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident as $method:ident($($argument:ident: $given:ty),+): $type:ty = $default:expr
            => { $($properties:tt)* }
    )+) => {
        impl JobBuilder {$(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(mut self, $($argument: $given),+) -> Self {
                let given = self.spec.$field.give(($($argument),+));
                self.noted(stringify!($field), given)
            }
        )+}
    };
}
job_settings!(methods);

impl JobBuilder {
    /// Starts a job of a script type (`osis`, `python`, …) with a script, everything else at its
    /// default.
    pub fn new(script_type: &str, script: impl Into<String>) -> Self {
        Self { spec: JobSpec::new(script), delay: None, wrong: None }.script_type(script_type)
    }

    /// The earliest time to start, this long after its submission by Redis's clock; in place of
    /// `run_at`.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Returns the job.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first setting that is not legal.
    pub fn build(self) -> Result<Job, InvalidJob> {
        if let Some(error) = self.wrong {
            return Err(error);
        }
        let mut job = Job::from(self.spec);
        if let Some(delay) = self.delay {
            job.set_delay(delay, Timestamp::now())?;
        }
        Ok(job)
    }

    fn noted(mut self, field: &str, given: Result<(), String>) -> Self {
        if let Err(reason) = given {
            let field = field.trim_start_matches("r#");
            self.wrong.get_or_insert(InvalidJob::new(field, reason));
        }
        self
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_illegal_setting_is_named() {
        let error = JobBuilder::new("osis", "1").group("a:b").instance(0).build();
        assert_eq!(error.expect_err("illegal").field, "group");
    }

    #[test]
    fn a_builder_without_settings_gives_the_defaults() {
        let job = JobBuilder::new("osis", "1").build().expect("legal");
        let fields: Vec<&str> = job.submitted_fields().iter().map(|(name, _)| *name).collect();
        assert_eq!(fields, ["id", "script", "script_type"]);
    }
}
