//! Builds a job, one named setting after the other.

use std::time::Duration;

use jiff::Timestamp;

use crate::proto::job::{InvalidJob, Job, JobId};

/// A job in the making. Every setting takes text or numbers as a person has them; what breaks a
/// form is told by [`JobBuilder::build`].
#[derive(Debug, Clone)]
pub struct JobBuilder {
    job: Job,
    /// The first thing that was wrong.
    wrong: Option<InvalidJob>,
}

impl JobBuilder {
    /// A job of a script type (`osis`, `python`, …) with a script, all else at its default and
    /// with a new random id.
    pub fn new(script_type: &str, script: impl Into<String>) -> Self {
        let job = Job::new(JobId::random(), script);
        let mut builder = Self { job, wrong: None };
        builder.job.script_type = builder.parsed("script_type", script_type);
        builder
    }

    /// An id of one's own, instead of a random UUID.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        if let Some(id) = self.parsed("id", id) {
            self.job.id = id;
        }
        self
    }

    /// Only for actors of this group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.job.group = self.parsed("group", group);
        self
    }

    /// Only for this instance, of the group `default` unless another is named.
    #[must_use]
    pub fn instance(mut self, instance: u16) -> Self {
        self.job.instance = self.parsed("instance", &instance.to_string());
        self
    }

    /// 0 urgent, 1 normal, 2 background.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        if let Some(priority) = self.parsed("priority", &priority.to_string()) {
            self.job.priority = priority;
        }
        self
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.job.timeout = Some(timeout);
        self
    }

    /// Attempts after the first.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.job.retries = Some(retries);
        self
    }

    /// Not beside others of its instance, but one at a time.
    #[must_use]
    pub fn concurrent(mut self, concurrent: bool) -> Self {
        self.job.concurrent = concurrent;
        self
    }

    /// Not before this job has finished. May be said again for more.
    #[must_use]
    pub fn after(mut self, id: &str) -> Self {
        let prerequisite = self.parsed::<JobId>("prerequisites", id);
        self.job.prerequisites.extend(prerequisite);
        self
    }

    /// Not before this job has ended, however. May be said again for more.
    #[must_use]
    pub fn after_any(mut self, id: &str) -> Self {
        let prerequisite = self.parsed::<JobId>("after_any", id);
        self.job.after_any.extend(prerequisite);
        self
    }

    /// How long it is kept after its end.
    #[must_use]
    pub fn retention(mut self, time: Duration) -> Self {
        self.job.retention = Some(time);
        self
    }

    /// Not before this time.
    #[must_use]
    pub fn run_at(mut self, time: Timestamp) -> Self {
        self.job.run_at = Some(time);
        self
    }

    /// Not before this much time has passed from now, by this machine's clock.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        match Timestamp::now().checked_add(delay) {
            Ok(time) => self.run_at(time),
            Err(_) => self.refuse(InvalidJob::new("run_at", "lies too far ahead")),
        }
    }

    /// At most one job with this key is on its way at a time.
    #[must_use]
    pub fn unique_key(mut self, key: &str) -> Self {
        self.job.unique_key = self.parsed("unique_key", key);
        self
    }

    /// What limits that look at keys count it under.
    #[must_use]
    pub fn limit_key(mut self, key: &str) -> Self {
        self.job.limit_key = self.parsed("limit_key", key);
        self
    }

    /// An environment variable of the script.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.job.env_vars.insert(name.into(), value.into());
        self
    }

    /// Who submits it.
    #[must_use]
    pub fn caller_id(mut self, caller: impl Into<String>) -> Self {
        self.job.caller_id = caller.into();
        self
    }

    /// In whose context it runs.
    #[must_use]
    pub fn context_id(mut self, context: impl Into<String>) -> Self {
        self.job.context_id = context.into();
        self
    }

    /// A file for its log, inside the log folder of the actor's machine.
    #[must_use]
    pub fn log_path(mut self, path: impl Into<String>) -> Self {
        self.job.log_path = Some(path.into());
        self
    }

    /// Whether a reply is pushed when it ends; `false` if nobody will wait for it.
    #[must_use]
    pub fn reply(mut self, reply: bool) -> Self {
        self.job.reply = reply;
        self
    }

    /// The job.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first setting that broke its form.
    pub fn build(self) -> Result<Job, InvalidJob> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.job),
        }
    }

    fn parsed<T>(&mut self, field: &str, value: &str) -> Option<T>
    where
        T: std::str::FromStr<Err = crate::proto::target::IllegalName>,
    {
        match value.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.wrong.get_or_insert(InvalidJob::new(field, format!("is refused: {error}")));
                None
            }
        }
    }

    fn refuse(mut self, wrong: InvalidJob) -> Self {
        self.wrong.get_or_insert(wrong);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_setting_is_named() {
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
