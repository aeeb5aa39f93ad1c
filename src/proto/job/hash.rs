//! The job hash, both ways. Whatever a stranger wrote into it gives a job or a named error.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Job, JobId};
use crate::proto::target::{ActorId, Priority};

/// A hash that cannot be run: which field is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid job: {field} {reason}")]
pub struct InvalidJob {
    /// The field at fault.
    pub field: String,
    /// What is wrong with it, to be read after the field's name.
    pub reason: String,
}

impl InvalidJob {
    /// Names a field and what is wrong with it.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

/// No job may take or be kept for longer than this, whatever the configuration says: ten years.
const SECONDS_MAX: f64 = 315_360_000.0;
/// Most prerequisites, environment variables or dependents one hash may name.
const LIST_LEN_MAX: usize = 100_000;

impl Job {
    /// Reads a hash as Redis returns it. `id` is the end of its key, which wins over the field.
    ///
    /// Fields that a submitter writes must be in order. Fields that only Hero writes are for
    /// reading: what is illegible there counts as absent and keeps no job from running.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first field that is not in order.
    pub fn from_hash<'a>(
        id: JobId,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Self, InvalidJob> {
        let mut job = Self::new(id, String::new());
        let mut script = None;
        let mut legacy = Legacy::default();
        for (name, value) in fields {
            let name = std::str::from_utf8(name)
                .map_err(|_| InvalidJob::new("a field's name", "is not UTF-8"))?;
            let value = std::str::from_utf8(value)
                .map_err(|_| InvalidJob::new(shown(name), "is not UTF-8"))?;
            match name {
                "script" => script = Some(value),
                "worker_id" | "actor_id" => legacy.actor = Some(value),
                "dependencies" => legacy.prerequisites = Some(value),
                _ => job.read_field(name, value)?,
            }
        }
        legacy.fill(&mut job)?;
        script.filter(|text| !text.is_empty()).map_or_else(
            || Err(InvalidJob::new("script", "is missing")),
            |text| {
                text.clone_into(&mut job.script);
                Ok(job)
            },
        )
    }

    fn read_field(&mut self, name: &str, value: &str) -> Result<(), InvalidJob> {
        match name {
            "id" => {}
            "caller_id" => value.clone_into(&mut self.caller_id),
            "context_id" => value.clone_into(&mut self.context_id),
            "script_type" => self.script_type = strict(name, value)?,
            "group" => self.group = strict(name, value)?,
            "instance" => self.instance = strict(name, value)?,
            "priority" => self.priority = strict(name, value)?.unwrap_or_default(),
            "timeout" => self.timeout = seconds(name, value)?,
            "retries" => self.retries = number(name, value)?,
            "concurrent" => self.concurrent = boolean(name, value)?,
            "log_path" => self.log_path = some_text(value),
            "env_vars" => self.env_vars = env_vars(value)?,
            "prerequisites" => self.prerequisites = ids(name, value)?,
            "after_any" => self.after_any = ids(name, value)?,
            "prerequisite_names" => self.prerequisite_names = names_of_ids(name, value)?,
            "retention" => self.retention = seconds(name, value)?,
            "run_at" => self.run_at = run_at(value)?,
            "unique_key" => self.unique_key = strict(name, value)?,
            "limit_key" => self.limit_key = strict(name, value)?,
            "reply" => self.reply = value != "0",
            "status" => {
                self.status = value.parse().map_err(|error| InvalidJob::new(name, said(&error)))?;
            }
            "created_at" => self.created_at = value.parse().ok(),
            "updated_at" => self.updated_at = value.parse().ok(),
            "started_at" => self.started_at = value.parse().ok(),
            "finished_at" => self.finished_at = value.parse().ok(),
            "dependents" => self.dependents = ids(name, value).unwrap_or_default(),
            "dependents_more" => self.dependents_more = value.parse().unwrap_or_default(),
            "attempt" => self.attempt = value.parse().unwrap_or_default(),
            "crashes" => self.crashes = value.parse().unwrap_or_default(),
            "actor" => self.actor = value.parse().ok(),
            "boot_id" => self.boot_id = value.parse().ok(),
            "output" => self.output = Some(value.to_owned()),
            "error" => self.error = Some(value.to_owned()),
            "exit_code" => self.exit_code = value.parse().ok(),
            _ => {
                self.extra.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    /// The fields to write, each under its name. What holds its default is left out, the status
    /// and the id never are.
    pub fn to_hash(&self) -> Vec<(&str, String)> {
        let mut fields = self.submitted_fields();
        let mut put = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
        put("status", Some(self.status.to_string()));
        put("created_at", self.created_at.map(written_time));
        put("updated_at", self.updated_at.map(written_time));
        put("started_at", self.started_at.map(written_time));
        put("finished_at", self.finished_at.map(written_time));
        put("dependents", written_ids(&self.dependents));
        put(
            "dependents_more",
            (self.dependents_more > 0).then(|| self.dependents_more.to_string()),
        );
        put("attempt", (self.attempt > 0).then(|| self.attempt.to_string()));
        put("crashes", (self.crashes > 0).then(|| self.crashes.to_string()));
        put("actor", self.actor.as_ref().map(ToString::to_string));
        put("boot_id", self.boot_id.as_ref().map(ToString::to_string));
        put("output", self.output.clone());
        put("error", self.error.clone());
        put("exit_code", self.exit_code.map(|code| code.to_string()));
        fields
    }

    /// The fields that a submitter writes, the id first.
    pub fn submitted_fields(&self) -> Vec<(&str, String)> {
        let mut fields = vec![("id", self.id.to_string()), ("script", self.script.clone())];
        let mut put = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
        put("caller_id", some_text(&self.caller_id));
        put("context_id", some_text(&self.context_id));
        put("script_type", self.script_type.as_ref().map(ToString::to_string));
        put("group", self.group.as_ref().map(ToString::to_string));
        put("instance", self.instance.map(|instance| instance.to_string()));
        put("priority", (self.priority != Priority::default()).then(|| self.priority.to_string()));
        put("timeout", self.timeout.map(|timeout| written_seconds(timeout).to_string()));
        put("retries", self.retries.map(|retries| retries.to_string()));
        put("concurrent", (!self.concurrent).then(|| "false".to_owned()));
        put("log_path", self.log_path.clone());
        put("env_vars", (!self.env_vars.is_empty()).then(|| json!(self.env_vars).to_string()));
        put("prerequisites", written_ids(&self.prerequisites));
        put("after_any", written_ids(&self.after_any));
        let names = &self.prerequisite_names;
        put("prerequisite_names", (!names.is_empty()).then(|| json!(names).to_string()));
        put("run_at", self.run_at.map(written_time));
        put("unique_key", self.unique_key.as_ref().map(ToString::to_string));
        put("limit_key", self.limit_key.as_ref().map(ToString::to_string));
        put("retention", self.retention.map(|kept| written_seconds(kept).to_string()));
        put("reply", (!self.reply).then(|| "0".to_owned()));
        for (name, value) in &self.extra {
            fields.push((name, value.clone()));
        }
        fields
    }

    /// The job as one JSON object, its members named as the fields of the hash: numbers and
    /// lists as such, times as text. Absent means absent in the hash too.
    pub fn to_json(&self) -> Value {
        let mut object: Map<String, Value> = self
            .to_hash()
            .into_iter()
            .map(|(name, value)| {
                let value = match name {
                    "instance" | "priority" | "timeout" | "retries" | "attempt" | "crashes"
                    | "exit_code" | "progress" | "concurrent" | "env_vars" | "prerequisites"
                    | "after_any" | "prerequisite_names" | "dependents" | "dependents_more"
                    | "retention" | "signal" | "cpu_time" | "memory_peak" => {
                        serde_json::from_str(&value).unwrap_or(Value::String(value))
                    }
                    _ => Value::String(value),
                };
                (name.to_owned(), value)
            })
            .collect();
        object.entry("priority").or_insert_with(|| json!(1));
        Value::Object(object)
    }
}

/// The spellings of older programs.
#[derive(Default)]
struct Legacy<'a> {
    actor: Option<&'a str>,
    prerequisites: Option<&'a str>,
}

impl Legacy<'_> {
    /// Fills what the job's own fields left open. A worker's name that is no actor of ours says
    /// nothing about where the job goes.
    fn fill(self, job: &mut Job) -> Result<(), InvalidJob> {
        if let Some(value) = self.prerequisites
            && job.prerequisites.is_empty()
        {
            job.prerequisites = ids("dependencies", value)?;
        }
        let named = self
            .actor
            .and_then(|name| ActorId::from_str(name).or_else(|_| ActorId::from_unit(name)).ok());
        if let Some(actor) = named
            && job.group.is_none()
            && job.instance.is_none()
            && job.script_type.as_ref().is_none_or(|own| *own == actor.script_type)
        {
            job.script_type = Some(actor.script_type);
            job.group = Some(actor.group);
            job.instance = Some(actor.instance);
        }
        Ok(())
    }
}

/// A field's name, short enough for a message.
fn shown(name: &str) -> String {
    if name.is_empty() {
        return "a field without a name".to_owned();
    }
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

/// The part of a name's error that follows the field's name.
fn said(error: &impl Display) -> String {
    let text = error.to_string();
    match text.split_once('`') {
        Some((_, value)) => format!("`{value}"),
        None => text,
    }
}

fn some_text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

/// A name that must be legal; empty counts as absent, as many clients write it.
fn strict<T: FromStr<Err: Display>>(field: &str, value: &str) -> Result<Option<T>, InvalidJob> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|error| InvalidJob::new(field, said(&error)))
}

fn number(field: &str, value: &str) -> Result<Option<u32>, InvalidJob> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| {
        InvalidJob::new(field, format!("`{}` is no whole number of 0 or more", shown(value)))
    })
}

fn boolean(field: &str, value: &str) -> Result<bool, InvalidJob> {
    match value {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(InvalidJob::new(field, format!("`{}` is not true or false", shown(other)))),
    }
}

/// Seconds, whole or decimal, above zero.
fn seconds(field: &str, value: &str) -> Result<Option<Duration>, InvalidJob> {
    if value.is_empty() {
        return Ok(None);
    }
    value
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0 && *seconds <= SECONDS_MAX)
        .map(|seconds| Some(Duration::from_secs_f64(seconds)))
        .ok_or_else(|| {
            let reason = format!("`{}` is no number of seconds above 0", shown(value));
            InvalidJob::new(field, reason)
        })
}

fn run_at(value: &str) -> Result<Option<Timestamp>, InvalidJob> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| {
        let reason = format!("`{}` is no time such as 2026-01-31T12:00:00Z", shown(value));
        InvalidJob::new("run_at", reason)
    })
}

fn env_vars(value: &str) -> Result<BTreeMap<String, String>, InvalidJob> {
    if value.is_empty() {
        return Ok(BTreeMap::new());
    }
    let vars: BTreeMap<String, String> = serde_json::from_str(value)
        .map_err(|_| InvalidJob::new("env_vars", "is no JSON object of strings"))?;
    if vars.len() > LIST_LEN_MAX {
        return Err(InvalidJob::new("env_vars", format!("names more than {LIST_LEN_MAX}")));
    }
    match vars.keys().find(|name| !is_variable_name(name)) {
        Some(name) => Err(InvalidJob::new(
            "env_vars",
            format!("names `{}`, which is no name of a variable", shown(name)),
        )),
        None if vars.values().any(|value| value.contains('\0')) => {
            Err(InvalidJob::new("env_vars", "holds a value with a NUL byte"))
        }
        None => Ok(vars),
    }
}

/// A letter or `_`, then letters, digits and `_`: what every shell can read.
fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.len() <= 256
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn ids(field: &str, value: &str) -> Result<Vec<JobId>, InvalidJob> {
    if value.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<JobId> = serde_json::from_str(value)
        .map_err(|_| InvalidJob::new(field, "is no JSON array of job ids"))?;
    if ids.len() > LIST_LEN_MAX {
        return Err(InvalidJob::new(field, format!("names more than {LIST_LEN_MAX} jobs")));
    }
    Ok(ids)
}

fn names_of_ids(field: &str, value: &str) -> Result<BTreeMap<String, JobId>, InvalidJob> {
    if value.is_empty() {
        return Ok(BTreeMap::new());
    }
    serde_json::from_str(value)
        .map_err(|_| InvalidJob::new(field, "is no JSON object of job ids"))
        .and_then(|names: BTreeMap<String, JobId>| match names.len() {
            0..=LIST_LEN_MAX => Ok(names),
            _ => Err(InvalidJob::new(field, format!("names more than {LIST_LEN_MAX} jobs"))),
        })
}

fn written_ids(ids: &[JobId]) -> Option<String> {
    (!ids.is_empty()).then(|| json!(ids).to_string())
}

/// Whole seconds without a fraction, as older programs expect.
fn written_seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// RFC 3339, UTC, milliseconds.
fn written_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::JobStatus;
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
        assert_eq!(job.script, "1");
        assert_eq!(job.status, JobStatus::Dispatched);
        assert_eq!(
            (job.script_type, job.timeout, job.retries, job.reply),
            (None, None, None, true)
        );
    }

    #[test]
    fn the_message_names_the_field_and_shows_the_value() {
        for (field, value, message) in [
            ("timeout", "soon", "invalid job: timeout `soon` is no number of seconds above 0"),
            ("timeout", "-1", "invalid job: timeout `-1` is no number of seconds above 0"),
            ("timeout", "inf", "invalid job: timeout `inf` is no number of seconds above 0"),
            ("retries", "-1", "invalid job: retries `-1` is no whole number of 0 or more"),
            ("env_vars", "[1]", "invalid job: env_vars is no JSON object of strings"),
            ("prerequisites", "x", "invalid job: prerequisites is no JSON array of job ids"),
            ("after_any", "{}", "invalid job: after_any is no JSON array of job ids"),
            ("retention", "0", "invalid job: retention `0` is no number of seconds above 0"),
            (
                "prerequisite_names",
                r#"{"a":"b:c"}"#,
                "invalid job: prerequisite_names is no JSON object of job ids",
            ),
            ("run_at", "now", "invalid job: run_at `now` is no time such as 2026-01-31T12:00:00Z"),
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
    fn bytes_that_are_no_utf8_are_named_and_harm_nothing() {
        let id: JobId = "j1".parse().expect("legal");
        let fields: [(&[u8], &[u8]); 1] = [(b"script", b"\xff")];
        let error = Job::from_hash(id, fields).expect_err("not UTF-8");
        assert_eq!(error.to_string(), "invalid job: script is not UTF-8");
    }

    #[test]
    fn what_only_hero_writes_keeps_no_job_from_running() {
        let job = read(&[("script", "1"), ("attempt", "x"), ("created_at", "y"), ("actor", "z")]);
        assert_eq!(job, read(&[("script", "1")]));
    }

    #[test]
    fn legacy_spellings_are_read_and_our_own_win() {
        let job =
            read(&[("script", "1"), ("worker_id", "osis-io-3"), ("dependencies", r#"["a"]"#)])
                .expect("a job");
        assert_eq!(
            job.queue().map(|q| q.to_string()).as_deref(),
            Some("type:osis:group:io:inst:3")
        );
        assert_eq!(job.prerequisites.len(), 1);
        let job = read(&[("script", "1"), ("actor_id", "w1"), ("group", "io")]).expect("a job");
        assert_eq!(
            (job.script_type, job.group.map(|g| g.to_string())),
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
        job.timeout = Some(Duration::from_secs(90));
        assert!(job.submitted_fields().contains(&("timeout", "90".to_owned())));
        job.timeout = Some(Duration::from_millis(1500));
        assert!(job.submitted_fields().contains(&("timeout", "1.5".to_owned())));
    }

    const NAMES: &[&str] = &[
        "id",
        "caller_id",
        "context_id",
        "script_type",
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
        "limit_key",
        "reply",
        "created_at",
        "updated_at",
        "started_at",
        "finished_at",
        "status",
        "dependents",
        "attempt",
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
            instance in of(1u16..),
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
            output in of(".{0,20}"),
            exit_code in of(any::<i32>()),
            status in 0usize..7,
        ) {
            let mut job = Job::new("j1".parse().expect("legal"), script);
            job.caller_id = caller_id;
            job.script_type = script_type.map(|t| t.parse().expect("legal"));
            job.group = group.map(|g| g.parse().expect("legal"));
            job.instance = instance.map(|i| i.try_into().expect("legal"));
            job.priority = Priority::ALL[priority];
            job.timeout = timeout_ms.map(Duration::from_millis);
            job.retries = retries;
            job.concurrent = concurrent;
            job.reply = reply;
            job.env_vars = env_vars;
            job.prerequisites = prerequisites.iter().map(|p| p.parse().expect("legal")).collect();
            job.after_any = after_any.iter().map(|p| p.parse().expect("legal")).collect();
            let legal = |(name, id): (String, String)| (name, id.parse().expect("legal"));
            job.prerequisite_names = names.into_iter().map(legal).collect();
            job.retention = retention_ms.map(Duration::from_millis);
            job.run_at = run_at_ms.map(|ms| Timestamp::from_millisecond(ms).expect("in range"));
            job.attempt = attempt;
            job.output = output;
            job.exit_code = exit_code;
            job.status = JobStatus::ALL[status];
            let fields = job.to_hash();
            let pairs = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
            prop_assert_eq!(Job::from_hash(job.id.clone(), pairs), Ok(job.clone()));
        }
    }
}
