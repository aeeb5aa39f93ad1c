//! Builds a job from named settings, one method for each row of `proto/job/settings.rs`.

use std::time::Duration;

use jiff::Timestamp;

use crate::proto::job::{Give, InvalidJob, Job, JobSpec, job_settings};

/// A job under construction. Each method takes text or numbers as people write them;
/// [`JobBuilder::build`] reports the first that is not legal.
#[derive(Debug, Clone)]
pub struct JobBuilder {
    spec: JobSpec,
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
        Self { spec: JobSpec::new(script), wrong: None }.script_type(script_type)
    }

    /// The earliest time to start, this long from now by this machine's clock.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        match time_after(delay) {
            Ok(time) => self.run_at(time),
            Err(error) => self.noted("run_at", Err(error.reason)),
        }
    }

    /// Returns the job.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first setting that is not legal.
    pub fn build(self) -> Result<Job, InvalidJob> {
        self.wrong.map_or(Ok(self.spec.into()), Err)
    }

    fn noted(mut self, field: &str, given: Result<(), String>) -> Self {
        if let Err(reason) = given {
            self.wrong.get_or_insert(InvalidJob::new(field, reason));
        }
        self
    }
}

/// Returns the time that is this long from now by this machine's clock.
///
/// # Errors
/// [`InvalidJob`] if no timestamp is as late.
pub(crate) fn time_after(delay: Duration) -> Result<Timestamp, InvalidJob> {
    let time = Timestamp::now().checked_add(delay);
    time.map_err(|_| InvalidJob::new("run_at", "is too far in the future"))
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
