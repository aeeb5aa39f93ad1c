//! The definition of a published script, and its use by a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DEFINITION_BYTES_MAX;
use super::parameters::Parameters;
use crate::proto::job::{ContentHash, Entrance, InvalidJob, JobSpec, Setting};
use crate::proto::script_use::{ScriptName, ScriptUse};
use crate::proto::target::ScriptType;
use crate::proto::text::sha256;

const DESCRIPTION_CHARS_MAX: usize = 2000;

/// Returns the SHA-256 of a text.
pub fn digest_of(text: &str) -> ContentHash {
    sha256(text).parse().unwrap_or_else(|_| unreachable!("64 hexadecimal digits"))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptDefinition {
    pub digest: ContentHash,
    pub script_type: ScriptType,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The settings of its jobs that do not say otherwise: fields of the hash and their texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The parameters that it declares; any are taken if it declares none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Parameters>,
}

/// The provenance of a version: who published it, when, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    pub by: String,
    /// The time of that, in RFC 3339.
    pub at: String,
    /// The file of the configuration that it is from; empty if a command published it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The version whose text it has again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_to: Option<u32>,
}

/// A version of a published script without its name and text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptVersion {
    /// Its number, from 1.
    pub version: u32,
    pub story: Provenance,
    pub definition: ScriptDefinition,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PublishedScript {
    pub name: ScriptName,
    pub of: ScriptVersion,
    pub text: String,
}

impl ScriptDefinition {
    /// Makes the definition of a text, with the settings of a specification that a script may have.
    pub fn new(
        text: &str,
        spec: &JobSpec,
        description: String,
        params: Option<Parameters>,
    ) -> Result<Self, InvalidJob> {
        let Some(script_type) = spec.script_type.clone() else {
            return Err(InvalidJob::new("script_type", "is missing"));
        };
        let is_its_own = |setting: &&Setting| setting.absent_at(Entrance::Script).is_none();
        let settings = crate::proto::job::SETTINGS.iter().filter(is_its_own);
        let settings = settings
            .filter(|setting| setting.field != "script_type")
            .filter_map(|setting| Some((setting.field.to_owned(), setting.text(spec)?)));
        let settings = settings.collect();
        let made = Self { digest: digest_of(text), script_type, description, settings, params };
        made.check()?;
        Ok(made)
    }

    /// Checks it as far as its type and bounds of a configuration do not matter.
    pub fn check(&self) -> Result<(), InvalidJob> {
        if self.description.chars().count() > DESCRIPTION_CHARS_MAX {
            let why = format!("is longer than {DESCRIPTION_CHARS_MAX} characters");
            return Err(InvalidJob::new("description", why));
        }
        if let Some(params) = &self.params {
            params
                .check_declared()
                .map_err(|(name, why)| InvalidJob::new("params", format!("{name}: {why}")))?;
        }
        for (field, text) in &self.settings {
            let setting = Setting::of_field(field)
                .ok_or_else(|| InvalidJob::new(field.clone(), "is not a setting of a job"))?;
            if let Some(why) = setting.absent_at(Entrance::Script) {
                return Err(InvalidJob::new(field.clone(), why));
            }
            setting.set(&mut JobSpec::default(), text)?;
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > DEFINITION_BYTES_MAX {
            let why =
                format!("settings and parameters have more than {DEFINITION_BYTES_MAX} bytes");
            return Err(InvalidJob::new("the script's", why));
        }
        Ok(())
    }

    /// Returns the settings as a job has them that says nothing itself.
    pub fn spec(&self, text: &str) -> Result<JobSpec, InvalidJob> {
        let mut spec = JobSpec::new(text);
        spec.script_type = Some(self.script_type.clone());
        self.fill(&mut spec)?;
        Ok(spec)
    }

    /// Sets what a job leaves open. A map of the job gains the entries that it does not have.
    fn fill(&self, spec: &mut JobSpec) -> Result<(), InvalidJob> {
        for (field, text) in &self.settings {
            let Some(setting) = Setting::of_field(field) else { continue };
            match setting.text(spec) {
                None => setting.set(spec, text)?,
                // The job's own entries win.
                Some(own) if field == "env_vars" => {
                    setting.set(spec, text)?;
                    setting.set(spec, &own)?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl PublishedScript {
    pub fn reference(&self) -> ScriptUse {
        ScriptUse { name: self.name.clone(), version: Some(self.of.version) }
    }

    /// Gives a job the text, the settings that it leaves open, and the defaults of the parameters that it leaves out.
    /// A job that has the text already, as a copy of another does, keeps its settings.
    pub fn give_to(&self, spec: &mut JobSpec) -> Result<(), InvalidJob> {
        let (definition, reference) = (&self.of.definition, self.reference());
        let wrong = |field: &str, why: String| Err(InvalidJob::new(field, why));
        let other = spec.script_digest.as_ref().filter(|given| **given != definition.digest);
        if let Some(other) = other {
            let why = format!(
                "`{other}` is not the digest of {reference}, which is {}",
                definition.digest
            );
            return wrong("script_digest", why);
        }
        if let Some(other) = spec.script_type.as_ref().filter(|own| **own != definition.script_type)
        {
            let why = format!(
                "`{other}` is not the type of {reference}, which is {}",
                definition.script_type
            );
            return wrong("script_type", why);
        }
        let of_params = |why: String| InvalidJob::new("params", format!("of {reference}: {why}"));
        if spec.script.is_empty() {
            definition.fill(spec)?;
            if let Some(params) = &definition.params {
                params.fill(&mut spec.params).map_err(of_params)?;
            }
            if spec.name.is_none() {
                spec.name = self.name.as_str().parse().ok();
            }
            spec.script.clone_from(&self.text);
            spec.script_type = Some(definition.script_type.clone());
        } else if digest_of(&spec.script) != definition.digest {
            return wrong(
                "script",
                format!("is not the text of {reference}: leave one of both out"),
            );
        } else if let Some(params) = &definition.params {
            params.check(&spec.params).map_err(of_params)?;
        }
        spec.uses = Some(reference);
        spec.script_digest = Some(definition.digest.clone());
        Ok(())
    }
}

impl JobSpec {
    /// Returns the published script whose text the job does not have yet.
    pub fn unresolved(&self) -> Option<&ScriptUse> {
        self.uses.as_ref().filter(|_| self.script.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "print(1)\n";

    fn published() -> PublishedScript {
        let mut spec = JobSpec::new(TEXT);
        for (field, text) in [
            ("script_type", "python"),
            ("timeout", "300"),
            ("env_vars", r#"{"A":"1","B":"2"}"#),
            ("priority", "2"),
        ] {
            Setting::of_field(field).expect(field).set(&mut spec, text).expect(text);
        }
        let params =
            json!({ "host": { "required": true }, "count": { "type": "integer", "default": 2 } });
        let params = serde_json::from_value(params).expect("parameters");
        let definition =
            ScriptDefinition::new(TEXT, &spec, String::new(), Some(params)).expect("legal");
        let of = ScriptVersion { version: 3, story: Provenance::default(), definition };
        PublishedScript { name: "deploy".parse().expect("legal"), of, text: TEXT.to_owned() }
    }

    fn job(fields: &[(&str, &str)]) -> JobSpec {
        let mut spec = JobSpec::default();
        for (field, text) in [("uses", "deploy")].iter().chain(fields) {
            Setting::of_field(field).expect(field).set(&mut spec, text).expect(text);
        }
        spec
    }

    #[test]
    fn digest_is_what_sha256sum_writes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest_of("").as_str(), empty);
    }

    #[test]
    fn job_gets_the_text_and_what_it_leaves_open() {
        let mut spec = job(&[
            ("params", r#"{"host":"web1"}"#),
            ("env_vars", r#"{"B":"3"}"#),
            ("timeout", "10"),
        ]);
        published().give_to(&mut spec).expect("legal");
        assert_eq!(
            (spec.script.as_str(), spec.timeout.map(|time| time.as_secs())),
            (TEXT, Some(10))
        );
        assert_eq!(json!(spec.params), json!({ "host": "web1", "count": 2 }));
        assert_eq!(json!(spec.env_vars), json!({ "A": "1", "B": "3" }));
        assert_eq!(spec.priority.as_str(), "2");
        assert_eq!(spec.uses.as_ref().expect("named").to_string(), "deploy@3");
        assert_eq!(spec.script_digest, Some(digest_of(TEXT)));
        assert_eq!(spec.name.as_ref().map(crate::proto::job::JobName::as_str), Some("deploy"));
        // A second time, and for a copy without a setting, nothing changes.
        let mut again = spec.clone();
        again.timeout = None;
        let before = again.clone();
        published().give_to(&mut again).expect("legal");
        assert_eq!(again, before);
    }

    #[test]
    fn what_does_not_fit_the_script_is_rejected() {
        let other = "0".repeat(64);
        for (fields, said) in [
            (&[][..], "params of deploy@3: host: is missing"),
            (&[("params", r#"{"host":1}"#)], "params of deploy@3: host: 1 is a number"),
            (
                &[("script_type", "bash")],
                "script_type `bash` is not the type of deploy@3, which is python",
            ),
            (&[("script_digest", &other)], "is not the digest of deploy@3"),
            (
                &[("script", "evil"), ("params", r#"{"host":"a"}"#)],
                "script is not the text of deploy@3",
            ),
            (&[("script", TEXT), ("params", r#"{"hots":"a"}"#)], "`hots` is an unknown parameter"),
        ] {
            let error = published().give_to(&mut job(fields)).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn definition_has_no_settings_that_belong_to_one_job() {
        let mut definition = published().of.definition;
        for field in ["caller_id", "run_at", "prerequisites", "id", "uses", "nonsense"] {
            let mut wrong = definition.clone();
            wrong.settings.insert(field.to_owned(), "x".to_owned());
            assert!(wrong.check().is_err(), "{field}");
        }
        definition.description = "x".repeat(2001);
        assert!(definition.check().is_err());
        definition.description = String::new();
        definition
            .settings
            .insert("env_vars".to_owned(), json!({ "A": "x".repeat(20_000) }).to_string());
        assert!(
            definition
                .check()
                .expect_err("too large")
                .to_string()
                .contains("more than 16384 bytes")
        );
    }
}
