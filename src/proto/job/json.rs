//! A job as one JSON object, the way people and programs write one by hand.

use serde_json::{Map, Value};

use super::{InvalidJob, Job, JobId};

/// What only Hero writes.
const OWN_FIELDS: [&str; 14] = [
    "status",
    "created_at",
    "updated_at",
    "started_at",
    "finished_at",
    "dependents",
    "dependents_more",
    "attempt",
    "crashes",
    "actor",
    "boot_id",
    "output",
    "error",
    "exit_code",
];

impl Job {
    /// Reads a job that somebody wants to submit: members named as the fields of the hash, lists
    /// and numbers as such or as the text that the hash has. Without an `id` it gets a new one.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first member that is not in order, or not for a submitter to set.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, InvalidJob> {
        if let Some(own) = OWN_FIELDS.iter().find(|own| object.contains_key(**own)) {
            return Err(InvalidJob::new(*own, "is written by hero alone"));
        }
        let id = match object.get("id") {
            None | Some(Value::Null) => JobId::random(),
            Some(Value::String(id)) => {
                id.parse().map_err(|error| InvalidJob::new("id", format!("is refused: {error}")))?
            }
            Some(_) => return Err(InvalidJob::new("id", "is no text")),
        };
        let fields: Vec<(&String, String)> = object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| match value {
                Value::String(text) => (name, text.clone()),
                other => (name, other.to_string()),
            })
            .collect();
        Self::from_hash(id, fields.iter().map(|(name, text)| (name.as_bytes(), text.as_bytes())))
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
                "env_vars": {"A": "b"}, "concurrent": false, "group": null, "note": 7}"#,
        )
        .expect("a job");
        assert_eq!((job.id.as_str(), job.retries), ("a", Some(3)));
        assert_eq!((job.after_any[0].as_str(), job.prerequisites[0].as_str()), ("x", "y"));
        assert_eq!((job.env_vars["A"].as_str(), job.concurrent), ("b", false));
        assert_eq!((job.group, job.extra["note"].as_str()), (None, "7"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            (r"{}", "script is missing"),
            (r#"{"script": "1", "id": "a:b"}"#, "id is refused"),
            (r#"{"script": "1", "id": 7}"#, "id is no text"),
            (r#"{"script": "1", "retries": -1}"#, "retries `-1` is no whole number"),
            (r#"{"script": "1", "status": "finished"}"#, "status is written by hero alone"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_job_without_an_id_gets_one_of_its_own() {
        let ids = [(); 2].map(|()| read(r#"{"script": "1"}"#).expect("a job").id);
        assert_ne!(ids[0], ids[1]);
    }
}
