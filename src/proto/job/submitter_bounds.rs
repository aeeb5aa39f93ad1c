//! The bounds of the token that submitted a job, as its hash has them.

use serde_json::json;

use super::bounds::InvalidJob;
use super::spec::JobSpec;
use super::value::{FieldKind, HashValue};
use crate::proto::access::Bounds;
use crate::proto::text::shown;

impl HashValue for Bounds {
    const KIND: FieldKind = FieldKind::Object;

    fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("`{}`: {error}", shown(text)))
    }

    fn write(&self) -> String {
        json!(self).to_string()
    }
}

impl JobSpec {
    /// Refuses a log file that a job with the bounds of a token may not write: the files of each caller are in a folder of its
    /// name, and others have theirs in the same `job.log_dir`.
    ///
    /// # Errors
    /// [`InvalidJob`] names `log_path`.
    pub fn check_bound_log_file(&self) -> Result<(), InvalidJob> {
        let is_own = |path: &str| {
            path.strip_prefix(&self.caller_id).is_some_and(|rest| rest.starts_with('/'))
        };
        if self.log_path.as_deref().is_some_and(|path| !is_own(path)) {
            let caller = shown(&self.caller_id);
            let why = format!(
                "of a token with bounds must be in the folder of its caller: `{caller}/FILE`"
            );
            return Err(InvalidJob::new("log_path", why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::proto::job::Job;

    #[test]
    fn log_file_of_a_bound_job_is_in_the_folder_of_its_caller() {
        let mut spec = Job::new("j1".parse().expect("legal"), "1").spec;
        spec.caller_id = "ann".to_owned();
        for (path, is_legal) in [
            ("ann/a.log", true),
            ("ann", false),
            ("anna/a.log", false),
            ("/ann/a.log", false),
            ("bob/a.log", false),
        ] {
            spec.log_path = Some(path.to_owned());
            assert_eq!(spec.check_bound_log_file().is_ok(), is_legal, "{path}");
        }
    }
}
