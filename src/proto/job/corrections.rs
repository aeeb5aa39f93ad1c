//! New values for settings of a job that was submitted before: a corrected script, another timeout.

use serde_json::{Map, Value};

use super::bounds::InvalidJob;
use super::record::Job;
use super::signed_job::UNSIGNED;
use super::spec::{SETTINGS, Setting};

/// Settings that decide where a job is, who waits for it and whom it belongs to.
const FIXED: [&str; 21] = [
    "id",
    "caller_id",
    "context_id",
    "script_type",
    "group",
    "instance",
    "where",
    "priority",
    "prerequisites",
    "after_any",
    "may_fail",
    "prerequisite_names",
    "run_at",
    "expires",
    "expect_within",
    "unique_key",
    "unique_for",
    "unique_by",
    "on_duplicate",
    "limit_key",
    "shard_key",
];

const OF_A_SCRIPT: [&str; 2] = ["uses", "script_digest"];

/// Fields of the hash with their new texts; `None` takes a field away.
pub type Corrections = Vec<(&'static str, Option<String>)>;

impl Job {
    /// Returns a new job with the settings of this one except the fields `without`, and with these
    /// changes: members named as the fields of the hash, where null takes one away.
    pub fn copy_with(
        &self,
        changes: &Map<String, Value>,
        without: &[&str],
    ) -> Result<Self, InvalidJob> {
        let mut members = self.spec.to_json();
        members.retain(|field, _| !without.contains(&field.as_str()));
        members.extend(Setting::by_fields(changes)?);
        Self::from_json(&members)
    }

    /// Returns this job with other settings: members named as the fields of the hash, or as the words of the command
    /// line, where null takes one away.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first member that is unknown, not legal, or that no correction may change.
    pub fn corrected(&self, changes: &Map<String, Value>) -> Result<Self, InvalidJob> {
        let named = Setting::by_fields(changes)?;
        for field in named.keys().map(String::as_str) {
            if FIXED.contains(&field) {
                let option = match field {
                    "priority" => {
                        "; the option --priority of hero job edit changes it before the start"
                    }
                    "group" => "; the option --group of hero job edit changes it before the start",
                    "run_at" => {
                        "; the options --at and --delay of hero job edit change it before the start"
                    }
                    _ => "",
                };
                let why = "stays as it was submitted; hero job clone submits a copy with another";
                return Err(InvalidJob::new(field, [why, option].concat()));
            }
            if OF_A_SCRIPT.contains(&field) {
                let why =
                    "follows from the published script; hero job clone submits a copy with another";
                return Err(InvalidJob::new(field, why));
            }
        }
        self.check_signature(&named)?;
        // With another text it is no longer a job of the published script.
        let without: &[&str] = if named.contains_key("script") { &OF_A_SCRIPT } else { &[] };
        Ok(Self { spec: self.copy_with(&named, without)?.spec, ..self.clone() })
    }

    /// Checks that changes of a signed job come with another signature, if it signs what they change.
    fn check_signature(&self, changes: &Map<String, Value>) -> Result<(), InvalidJob> {
        let signed = changes.keys().find(|name| !UNSIGNED.contains(&name.as_str()));
        match (&self.spec.signature, signed) {
            (Some(signature), Some(name)) if !changes.contains_key("signature") => {
                let key = &signature.key;
                let why = format!(
                    "is signed by the key {key}: submit the corrected job as another one, with \
                     hero submit --sign"
                );
                Err(InvalidJob::new(name.clone(), why))
            }
            _ => Ok(()),
        }
    }

    /// Returns the fields whose values differ between another job and this one.
    pub fn corrections_to(&self, other: &Self) -> Corrections {
        let fields = SETTINGS.iter().filter(|setting| !FIXED.contains(&setting.field));
        let texts = fields.map(|of| (of.field, of.text(&self.spec), of.text(&other.spec)));
        texts.filter(|(_, old, new)| old != new).map(|(field, _, new)| (field, new)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn correction_changes_what_differs_and_nothing_that_decides_where_a_job_is() {
        let given = json!({
            "id": "a", "script": "1", "script_type": "osis", "unique_key": "k", "retries": 2,
            "timeout": 5,
        });
        let job = Job::from_json(given.as_object().expect("an object")).expect("a job");
        let corrected = |changes: Value| job.corrected(changes.as_object().expect("an object"));
        let changed =
            corrected(json!({ "script": "2", "timeout": null, "retries": 2, "env": {"A": "b"} }));
        let changed = changed.expect("legal");
        assert_eq!(changed.id, job.id);
        let fields = job.corrections_to(&changed);
        let expected =
            [("script", Some("2")), ("timeout", None), ("env_vars", Some(r#"{"A":"b"}"#))];
        let fields: Vec<_> = fields.iter().map(|(name, text)| (*name, text.as_deref())).collect();
        assert_eq!(fields, expected);
        for wrong in [
            json!({ "script_type": "sal" }),
            json!({ "type": "sal" }),
            json!({ "scrip": "1" }),
            json!({ "script": null }),
            json!({ "unique_key": "other" }),
        ] {
            assert!(corrected(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_fixed_name_is_a_setting() {
        assert!(FIXED.iter().all(|name| Setting::of_field(name).is_some()));
    }

    #[test]
    fn copy_has_the_settings_with_the_changes_and_a_new_id() {
        let given = json!({
            "id": "a", "script": "1", "script_type": "osis", "unique_key": "k", "retries": 2,
            "env_vars": {"A": "b"}, "timeout": 5, "reply": false,
        });
        let job = Job::from_json(given.as_object().expect("an object")).expect("a job");
        let changes = json!({ "script": "2", "timeout": null, "env_vars": {"B": "c"} });
        let changes = changes.as_object().expect("an object");
        let copy = job.copy_with(changes, &["id", "unique_key"]).expect("legal");
        assert_ne!(copy.id, job.id);
        let mut expected = job.spec.clone();
        expected.script = "2".to_owned();
        expected.unique_key = None;
        expected.timeout = None;
        expected.env_vars = [("B".to_owned(), "c".to_owned())].into();
        assert_eq!(copy.spec, expected);
        // By the words of the command line.
        let changes = json!({ "env": null, "context": "c", "retries": 1 });
        let copy = job.copy_with(changes.as_object().expect("an object"), &[]).expect("legal");
        assert_eq!((copy.spec.env_vars.len(), copy.spec.context_id.as_str()), (0, "c"));
        let both = json!({ "env": { "A": "1" }, "env_vars": null });
        assert!(job.copy_with(both.as_object().expect("an object"), &[]).is_err());
        for wrong in [json!({ "scrip": "1" }), json!({ "retries": "x" }), json!({ "script": null })]
        {
            let wrong = wrong.as_object().expect("an object");
            assert!(job.copy_with(wrong, &[]).is_err(), "{wrong:?}");
        }
    }
}
