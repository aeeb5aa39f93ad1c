//! A new job with the settings of another.

use serde_json::{Map, Value};

use super::bounds::InvalidJob;
use super::record::Job;
use super::spec::Setting;

impl Job {
    /// Returns a new job with the settings of this one except the fields `without`, and with these
    /// changes: members named as the fields of the hash, where null takes one away.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first member that is unknown or not legal.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
