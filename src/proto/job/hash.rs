//! The job hash, both ways. Any hash gives a job or an error that names a field.

use std::str::FromStr;

use super::bounds::InvalidJob;
use super::foreign_spelling;
use super::id::JobId;
use super::output::JobOutput;
use super::record::{Job, OWN_FIELDS};
use super::spec::{JobSpec, SETTINGS, Setting};
use super::status::JobStatus;
use super::value::{FieldKind, HashValue};
use crate::proto::target::ActorId;
use crate::proto::text::shown;

/// The one field that may have any bytes.
pub(super) const OUTPUT: &str = "output";

impl Job {
    /// Reads a hash as Redis returns it. `id` is the end of its key, which wins over the field.
    ///
    /// The fields of the submitter must be legal; an empty one counts as absent. A field that only
    /// Hero writes counts as absent where it cannot be read, and keeps no job from running.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first field that is not legal.
    pub fn from_hash<'a>(
        id: JobId,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Self, InvalidJob> {
        let mut job = Self::new(id, "");
        let mut legacy = LegacyFields::default();
        for (name, value) in fields {
            let name = std::str::from_utf8(name)
                .map_err(|_| InvalidJob::new("a field's name", "is not UTF-8"))?;
            if name == OUTPUT {
                job.output = Some(JobOutput::from(value.to_vec()));
                continue;
            }
            let value = std::str::from_utf8(value).map_err(|_| {
                let name = if name.is_empty() { "a field without a name" } else { name };
                InvalidJob::new(shown(name), "is not UTF-8")
            })?;
            if !legacy.take(name, value) {
                job.read_field(name, value)?;
            }
        }
        legacy.fill(&mut job.spec)?;
        if let Some(reason) = job.spec.where_conflict() {
            return Err(InvalidJob::new("where", reason));
        }
        if job.spec.script.is_empty() {
            return Err(InvalidJob::new("script", "is missing"));
        }
        Ok(job)
    }

    fn read_field(&mut self, name: &str, value: &str) -> Result<(), InvalidJob> {
        if let Some(setting) = Setting::of_field(name) {
            return match foreign_spelling::read(name, setting.kind, value) {
                Some(value) if name != "id" => setting.set(&mut self.spec, &value),
                _ => Ok(()),
            };
        }
        if let Some(own) = OWN_FIELDS.iter().find(|own| own.name == name) {
            (own.read)(self, value);
        } else if name == "status" {
            let status = JobStatus::read(value);
            self.status = status.map_err(|reason| InvalidJob::new(name, reason))?;
        } else {
            self.extra.insert(name.to_owned(), value.to_owned());
        }
        Ok(())
    }

    /// Returns the fields to write, but the output. A field at its default is left out, but for id and
    /// state.
    pub fn to_hash(&self) -> Vec<(&str, String)> {
        let mut fields = self.submitted_fields();
        fields.push(("status", self.status.to_string()));
        let own = OWN_FIELDS.iter().map(|own| (own.name, (own.write)(self)));
        fields.extend(own.filter_map(|(name, value)| Some((name, value?))));
        fields
    }

    /// Returns the fields that a submitter writes, the id first.
    pub fn submitted_fields(&self) -> Vec<(&str, String)> {
        let mut fields = vec![("id", self.id.to_string())];
        let settings = SETTINGS.iter().map(|setting| (setting.field, setting.text(&self.spec)));
        fields.extend(settings.filter_map(|(name, value)| Some((name, value?))));
        fields.extend(self.extra.iter().map(|(name, value)| (name.as_str(), value.clone())));
        fields
    }
}

/// The spellings of older programs.
#[derive(Default)]
pub(super) struct LegacyFields<'a> {
    actor: Option<&'a str>,
    prerequisites: Option<&'a str>,
}

impl<'a> LegacyFields<'a> {
    /// Keeps the value of a legacy spelling. Returns whether the name is one.
    pub(super) fn take(&mut self, name: &str, value: &'a str) -> bool {
        match name {
            "worker_id" | "actor_id" => self.actor = Some(value),
            "dependencies" => self.prerequisites = Some(value),
            _ => return false,
        }
        true
    }

    /// Fills the settings that the job's own fields leave open. The name of a worker that is not
    /// an actor of Hero says nothing about the target.
    pub(super) fn fill(self, spec: &mut JobSpec) -> Result<(), InvalidJob> {
        let prerequisites = self
            .prerequisites
            .and_then(|ids| foreign_spelling::read("dependencies", FieldKind::List, ids));
        if let (Some(ids), Some(setting)) = (prerequisites, Setting::of_field("prerequisites"))
            && spec.prerequisites.is_empty()
        {
            let set = setting.set(spec, &ids);
            set.map_err(|wrong| InvalidJob::new("dependencies", wrong.reason))?;
        }
        let actor = self
            .actor
            .and_then(|name| ActorId::from_str(name).or_else(|_| ActorId::from_unit(name)).ok());
        if let Some(actor) = actor
            && spec.group.is_none()
            && spec.instance.is_none()
            && spec.script_type.as_ref().is_none_or(|own| *own == actor.script_type)
        {
            spec.script_type = Some(actor.script_type);
            spec.group = Some(actor.group);
            spec.instance = Some(actor.instance);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proto::target::Priority;
    use jiff::Timestamp;
    use proptest::collection::{btree_map, vec};
    use proptest::option::of;
    use proptest::prelude::*;

    fn read(fields: &[(&str, &str)]) -> Result<Job, InvalidJob> {
        let id: JobId = "j1".parse().expect("legal");
        Job::from_hash(id, fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    #[test]
    fn a_raw_client_may_write_a_script_alone() {
        let job = read(&[("id", "j1"), ("script", "1"), ("status", "dispatched")]).expect("a job");
        assert_eq!(job.spec.script, "1");
        assert_eq!(job.status, JobStatus::Dispatched);
        assert_eq!(
            (job.spec.script_type, job.spec.timeout, job.spec.retries, job.spec.reply),
            (None, None, None, true)
        );
    }

    #[test]
    fn an_illegal_field_is_named_with_its_value() {
        for (field, value, message) in [
            ("timeout", "soon", "invalid job: timeout `soon` is not a number of seconds above 0"),
            ("timeout", "-1", "invalid job: timeout `-1` is not a number of seconds above 0"),
            ("timeout", "inf", "invalid job: timeout `inf` is not a number of seconds above 0"),
            ("retries", "-1", "invalid job: retries `-1` is not a whole number, 0 or more"),
            ("retries", "99999999999", "invalid job: retries `99999999999` is too large"),
            ("env_vars", "[1]", "invalid job: env_vars is not a JSON object of strings"),
            ("prerequisites", "[x", "invalid job: prerequisites is not a JSON array of job ids"),
            ("after_any", "{}", "invalid job: after_any is not a JSON array of job ids"),
            ("retention", "0", "invalid job: retention `0` is not a number of seconds above 0"),
            (
                "prerequisite_names",
                r#"{"a":"b:c"}"#,
                "invalid job: prerequisite_names is not a JSON object of job ids",
            ),
            (
                "run_at",
                "now",
                "invalid job: run_at `now` is not a time in RFC 3339 with Z or an offset, such as \
                 2026-12-24T18:00:00+01:00",
            ),
            (
                "priority",
                "9",
                "invalid job: priority `9` is not legal: 0 (urgent), 1 (normal) or 2 (background)",
            ),
        ] {
            let error = read(&[("script", "1"), (field, value)]).expect_err(field);
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(read(&[]).expect_err("no script").to_string(), "invalid job: script is missing");
        for (field, value) in [
            ("group", "a:b"),
            ("instance", "0"),
            ("script_type", "Osis"),
            ("name", "a\nb"),
            ("unique_key", "a\nb"),
            ("limit_key", "a\nb"),
            ("status", "done"),
            ("env_vars", r#"{"A=B":"1"}"#),
        ] {
            let error = read(&[("script", "1"), (field, value)]).expect_err(field);
            assert_eq!(error.field, field);
        }
    }

    #[test]
    fn a_field_that_is_not_utf8_is_named() {
        let id: JobId = "j1".parse().expect("legal");
        let fields: [(&[u8], &[u8]); 1] = [(b"script", b"\xff")];
        let error = Job::from_hash(id, fields).expect_err("not UTF-8");
        assert_eq!(error.to_string(), "invalid job: script is not UTF-8");
    }

    #[test]
    fn illegible_fields_of_hero_keep_no_job_from_running() {
        let job = read(&[("script", "1"), ("attempt", "x"), ("created_at", "y"), ("actor", "z")]);
        assert_eq!(job, read(&[("script", "1")]));
    }

    #[test]
    fn legacy_spellings_are_read_and_our_own_win() {
        let job =
            read(&[("script", "1"), ("worker_id", "osis-io-3"), ("dependencies", r#"["a"]"#)])
                .expect("a job");
        assert_eq!(
            job.spec.queue().map(|q| q.to_string()).as_deref(),
            Some("type:osis:group:io:inst:3")
        );
        assert_eq!(job.spec.prerequisites.len(), 1);
        let job = read(&[("script", "1"), ("actor_id", "w1"), ("group", "io")]).expect("a job");
        assert_eq!(
            (job.spec.script_type, job.spec.group.map(|g| g.to_string())),
            (None, Some("io".to_owned()))
        );
        assert!(job.extra.is_empty());
    }

    #[test]
    fn defaults_are_not_written() {
        let job = Job::new("j1".parse().expect("legal"), "1");
        assert_eq!(job.submitted_fields(), [("id", "j1".to_owned()), ("script", "1".to_owned())]);
    }

    #[test]
    fn whole_seconds_are_written_without_a_fraction() {
        let mut job = Job::new("j1".parse().expect("legal"), "1");
        job.spec.timeout = Some(Duration::from_secs(90));
        assert!(job.submitted_fields().contains(&("timeout", "90".to_owned())));
        job.spec.timeout = Some(Duration::from_millis(1500));
        assert!(job.submitted_fields().contains(&("timeout", "1.5".to_owned())));
    }

    const NAMES: &[&str] = &[
        "id",
        "caller_id",
        "context_id",
        "script_type",
        "extension",
        "group",
        "instance",
        "priority",
        "script",
        "timeout",
        "retries",
        "concurrent",
        "log_path",
        "env_vars",
        "prerequisites",
        "after_any",
        "prerequisite_names",
        "retention",
        "run_at",
        "unique_key",
        "unique_scope",
        "bounds",
        "limit_key",
        "shard_key",
        "reply",
        "created_at",
        "prerequisites_at",
        "updated_at",
        "started_at",
        "first_started_at",
        "finished_at",
        "status",
        "dependents",
        "attempt",
        "backoff",
        "retry_if",
        "discard_if",
        "postponed",
        "crashes",
        "actor",
        "boot_id",
        "output",
        "error",
        "exit_code",
        "worker_id",
        "actor_id",
        "dependencies",
        "unknown",
    ];

    proptest! {
        #[test]
        fn any_hash_gives_a_job_or_a_named_error(
            fields in vec((prop_oneof![
                proptest::sample::select(NAMES).prop_map(|n| n.as_bytes().to_vec()),
                vec(any::<u8>(), 0..8),
            ], prop_oneof![
                vec(any::<u8>(), 0..24),
                "[0-9.eE+-]{0,12}".prop_map(String::into_bytes),
                r#"[\[\]{}":,a-z0-9]{0,24}"#.prop_map(String::into_bytes),
            ]), 0..12)
        ) {
            let pairs = fields.iter().map(|(n, v)| (n.as_slice(), v.as_slice()));
            match Job::from_hash("j1".parse().expect("legal"), pairs) {
                Ok(job) => { let _ = job.to_json(); }
                Err(error) => prop_assert!(!error.field.is_empty() && error.to_string().len() < 4096),
            }
        }

        #[test]
        fn a_job_reads_back_as_it_is_written(
            script in ".{1,40}",
            caller_id in ".{0,8}",
            script_type in of("[a-z][a-z0-9_]{0,8}"),
            group in of("[a-z0-9][a-z0-9_.-]{0,8}"),
            instance in of(1i64..=65_535),
            priority in 0usize..3,
            timeout_ms in of(1u64..10_000_000),
            retries in of(any::<u32>()),
            concurrent: bool,
            reply: bool,
            env_vars in btree_map("[A-Z_]{1,8}", "[^\0]{0,8}", 0..3),
            prerequisites in vec("[A-Za-z0-9_-]{1,12}", 0..3),
            after_any in vec("[A-Za-z0-9_-]{1,12}", 0..3),
            names in btree_map(".{0,8}", "[A-Za-z0-9_-]{1,12}", 0..3),
            retention_ms in of(1u64..10_000_000),
            run_at_ms in of(0i64..4_000_000_000_000),
            attempt: u32,
            output in of(vec(any::<u8>(), 0..20)),
            exit_code in of(any::<i32>()),
            status in 0usize..7,
        ) {
            let mut job = Job::new("j1".parse().expect("legal"), script);
            job.spec.caller_id = caller_id;
            job.spec.script_type = script_type.map(|t| t.parse().expect("legal"));
            job.spec.group = group.map(|g| g.parse().expect("legal"));
            job.spec.instance = instance.map(|i| i.try_into().expect("legal"));
            job.spec.priority = Priority::ALL[priority];
            job.spec.timeout = timeout_ms.map(Duration::from_millis);
            job.spec.retries = retries;
            job.spec.concurrent = concurrent;
            job.spec.reply = reply;
            job.spec.env_vars = env_vars;
            job.spec.prerequisites = prerequisites.iter().map(|p| p.parse().expect("legal")).collect();
            job.spec.after_any = after_any.iter().map(|p| p.parse().expect("legal")).collect();
            let legal = |(name, id): (String, String)| (name, id.parse().expect("legal"));
            job.spec.prerequisite_names = names.into_iter().map(legal).collect();
            job.spec.retention = retention_ms.map(Duration::from_millis);
            job.spec.run_at = run_at_ms.map(|ms| Timestamp::from_millisecond(ms).expect("in range"));
            job.attempt = attempt;
            job.output = output.map(JobOutput::from);
            job.exit_code = exit_code;
            job.status = JobStatus::ALL[status];
            let fields = job.to_hash();
            let pairs = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
            let output = job.output.as_ref().map(|output| (OUTPUT.as_bytes(), output.as_bytes()));
            let pairs = pairs.chain(output);
            prop_assert_eq!(Job::from_hash(job.id.clone(), pairs), Ok(job.clone()));
        }
    }
}
