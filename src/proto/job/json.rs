//! A job as one JSON object: written for people, and read from the lines of a batch.

use serde_json::{Map, Value, json};

use super::bounds::InvalidJob;
use super::fields::JobField;
use super::hash::LegacyFields;
use super::record::{Job, OWN_FIELDS};
use super::spec::{JobSpec, SETTINGS, Setting};
use super::value::FieldKind;
use crate::proto::text::{did_you_mean, meant, shown};

impl Job {
    /// Returns the job as one JSON object, its members named as the fields of the hash: numbers
    /// and lists as such, times as text. A field that the hash does not have is left out.
    pub fn to_json(&self) -> Value {
        let fields = self.to_hash().into_iter().map(|(name, text)| {
            let value = json_of_field(name, text);
            (name.to_owned(), value)
        });
        let mut object: Map<String, Value> = fields.collect();
        if let Some(output) = &self.output {
            output.write(&mut object);
        }
        object.entry("priority").or_insert_with(|| json!(1));
        Value::Object(object)
    }

    /// Reads a job to submit: members named as the fields of the hash or as the words of the command line, lists and numbers as such
    /// or as the text of the hash. Without an `id` it gets a random one.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first member that is unknown, not legal, or not for a submitter.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, InvalidJob> {
        let members: Vec<(&str, String)> = object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name.as_str(), text.clone())),
                _ if name == "id" => Err(InvalidJob::new("id", "is not text")),
                other => Ok((name.as_str(), other.to_string())),
            })
            .collect::<Result<_, _>>()?;
        let mut spec = JobSpec::default();
        let mut legacy = LegacyFields::default();
        for (name, text) in &members {
            match Setting::named(name) {
                Some(setting) if setting.field != *name && object.contains_key(setting.field) => {
                    let why = format!("is `{name}` by another name: give one of both");
                    return Err(InvalidJob::new(setting.field, why));
                }
                Some(_) if text.is_empty() && *name != "id" => {}
                Some(setting) => setting.set(&mut spec, &setting.spoken(text))?,
                None if legacy.take(name, text) => {}
                None => return Err(not_a_setting(name)),
            }
        }
        legacy.fill(&mut spec)?;
        if spec.script.is_empty() && spec.uses.is_none() {
            return Err(InvalidJob::new("script", "is missing"));
        }
        Ok(Self::from(spec))
    }
}

/// Returns a field of the hash as JSON has it: numbers and lists as such, times as text.
pub fn json_of_field(name: &str, text: String) -> Value {
    match kind_of(name) {
        FieldKind::Text | FieldKind::Time => Value::String(text),
        FieldKind::Flag => json!(!matches!(text.as_str(), "0" | "false")),
        _ => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

fn kind_of(name: &str) -> FieldKind {
    let setting = Setting::of_field(name).map(|setting| setting.kind);
    let own = || OWN_FIELDS.iter().find(|own| own.name == name).map(|own| own.kind);
    let added = || JobField::of(name)?.added.map(|added| added.kind);
    setting.or_else(own).or_else(added).unwrap_or(FieldKind::Text)
}

fn not_a_setting(name: &str) -> InvalidJob {
    if JobField::of(name).is_some() {
        return InvalidJob::new(name, "is written by hero alone");
    }
    let fields = || SETTINGS.iter().map(|setting| setting.field);
    let hint = did_you_mean(meant(name, fields()));
    InvalidJob::new(format!("`{}`", shown(name)), format!("is an unknown name{hint}"))
}

impl JobSpec {
    /// Returns the settings that are not at their default, named as the fields of the hash.
    pub fn to_json(&self) -> Map<String, Value> {
        let set = SETTINGS.iter().filter_map(|set| Some((set.field, set.text(self)?)));
        set.map(|(field, text)| (field.to_owned(), json_of_field(field, text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Job, InvalidJob> {
        let Ok(Value::Object(object)) = serde_json::from_str(text) else { panic!("no object") };
        Job::from_json(&object)
    }

    #[test]
    fn numbers_and_lists_may_be_written_as_such_or_as_the_hash_has_them() {
        let job = read(
            r#"{"id": "a", "script": "1", "script_type": "osis", "timeout": 1.5, "retries": "3",
                "priority": 0, "after_any": ["x"], "prerequisites": "[\"y\"]",
                "env_vars": {"A": "b"}, "concurrent": false, "group": null, "reply": false}"#,
        )
        .expect("a job");
        assert_eq!((job.id.as_str(), job.spec.retries), ("a", Some(3)));
        assert_eq!(
            (job.spec.after_any[0].as_str(), job.spec.prerequisites[0].as_str()),
            ("x", "y")
        );
        assert_eq!((job.spec.env_vars["A"].as_str(), job.spec.concurrent), ("b", false));
        assert_eq!((job.spec.group, job.spec.reply), (None, false));
    }

    #[test]
    fn illegal_and_unknown_members_are_named() {
        for (text, message) in [
            (r"{}", "script is missing"),
            (r#"{"script": "1", "id": "a:b"}"#, "id `a:b` is not legal"),
            (r#"{"script": "1", "id": 7}"#, "id is not text"),
            (r#"{"script": "1", "retries": -1}"#, "retries `-1` is not a whole number"),
            (r#"{"script": "1", "status": "finished"}"#, "status is written by hero alone"),
            (
                r#"{"script": "1", "retires": 1}"#,
                "invalid job: `retires` is an unknown name; did you mean `retries`?",
            ),
            (
                r#"{"script": "1", "retry_backoff": "1s"}"#,
                "invalid job: `retry_backoff` is an unknown name; did you mean `backoff`?",
            ),
            (
                r#"{"script": "1", "env": {"A": "b"}, "env_vars": {}}"#,
                "invalid job: env_vars is `env` by another name: give one of both",
            ),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_job_without_an_id_gets_a_random_one() {
        let ids = [(); 2].map(|()| read(r#"{"script": "1"}"#).expect("a job").id);
        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn names_of_the_command_line_are_those_of_the_hash() {
        let by_field = r#"{"script": "1", "script_type": "osis", "env_vars": {"A": "b"}, "prerequisites": ["x"],
            "tags": ["t"], "run_at": "2100-01-01T00:00:00Z"}"#;
        let by_word = r#"{"script": "1", "type": "osis", "env": {"A": "b"}, "after": ["x"], "tag": ["t"],
            "at": "2100-01-01T00:00:00Z"}"#;
        assert_eq!(read(by_field).expect("a job").spec, read(by_word).expect("a job").spec);
    }
}
