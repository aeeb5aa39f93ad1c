//! Jobs as the methods take and return them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::{ApiMethods, read};
use crate::cli::job_options::{JobOptions, of_option};
use crate::client::ClientError;
use crate::config::{Config, format_duration};
use crate::error::{Error, Exit};
use crate::proto::job::{FileBody, Job, JobId, Params, TREES, WAITS_FOR, json_of_field};
use crate::proto::named_script::{Parameters, ScriptUse};
use crate::proto::target::IllegalName;
use crate::rpc::results::SubmittedId;

impl ApiMethods {
    /// Submits the job of the options with its files. Returns its id, and whether it is new.
    pub(in crate::cli) async fn submit(
        &self,
        options: &JobOptions,
        config: &Config,
    ) -> Result<(JobId, bool, Job), Error> {
        let job = options.job_with_words(self, config).await?;
        let files = options.files(&job, config)?;
        let encoded = |body: &FileBody| match body {
            FileBody::Bytes(bytes) => Ok(BASE64_STANDARD.encode(bytes)),
            FileBody::Artifact(_) => {
                let message = "the API takes no file of this size beside a job; put it where the actors find it";
                Err(Error::new(Exit::Data, message))
            }
        };
        let mut inputs = Map::new();
        for (name, body) in &files.inputs {
            inputs.insert(name.to_string(), encoded(body)?.into());
        }
        let stdin = files.stdin.as_ref().map(encoded).transpose()?;
        let params = json!({ "job": settings(&job), "inputs": inputs, "stdin": stdin });
        let (_, submitted) =
            self.typed::<SubmittedId>("job.submit", params).await.map_err(|error: Error| {
                let unsure = error.exit == Exit::Unavailable;
                let hint = if unsure {
                    "; whether the job was accepted is not known: hero job list"
                } else {
                    ""
                };
                Error::new(error.exit, format!("{}{hint}", error.message))
            })?;
        let id = submitted.id.parse().map_err(|error| no_job(&error))?;
        Ok((id, submitted.created, job))
    }

    /// Reads parameters that are words of a command line by the types that a published script declares. One that does not
    /// exist, or that the caller may not see, declares none.
    pub(in crate::cli) async fn read_words(
        &self,
        used: &ScriptUse,
        params: &mut Params,
        words: &[String],
    ) {
        if words.is_empty() {
            return;
        }
        let Ok(script) = self.call("script.get", json!({ "name": used })).await else { return };
        let declared = script["parameters"]["properties"].as_object().into_iter().flatten();
        let kind = |of: &Value| json!({ "type": of["type"] });
        let kinds: Value = declared.map(|(name, of)| (name.clone(), kind(of))).collect();
        if let Ok(declared) = serde_json::from_value::<Parameters>(kinds) {
            declared.read_words(params, words);
        }
    }

    /// Refuses what ends with a read if the token lacks the scope for that: the rest would be done, and nobody get the result.
    pub(in crate::cli) async fn needs_read(&self, doing: &str, hint: &str) -> Result<(), Error> {
        let who = self.call("whoami", json!({})).await?;
        let mut scopes = who["scopes"].as_array().into_iter().flatten();
        if scopes.any(|scope| scope == "read") {
            return Ok(());
        }
        let name = who["name"].as_str().unwrap_or_default();
        let message = format!("{name} may not {doing}: that needs the scope read; {hint}");
        Err(Error::new(Exit::NotPermitted, message))
    }
}

/// Returns the settings of a job as the API takes them.
pub(in crate::cli) fn settings(job: &Job) -> Map<String, Value> {
    let fields = job.submitted_fields().into_iter();
    let fields = fields.filter(|(name, _)| match *name {
        "id" => job.has_fixed_id,
        "run_at" => job.delay.is_none(),
        _ => true,
    });
    let mut settings: Map<String, Value> =
        fields.map(|(name, text)| (name.to_owned(), json_of_field(name, text))).collect();
    if let Some(delay) = job.delay {
        settings.insert("delay".to_owned(), format_duration(delay).into());
    }
    settings
}

fn no_job(error: &IllegalName) -> Error {
    Error::new(Exit::Unavailable, format!("the answer is no job: {error}"))
}

/// Returns the job of a document.
pub(in crate::cli) fn job_of(document: &Value) -> Result<Job, Error> {
    let wrong = |error: ClientError| of_option(error);
    let id: String = read("job.get", &document["id"])?;
    let id = id.parse().map_err(|error| no_job(&error))?;
    let is_encoded = document["output_encoding"] == "base64";
    let mut fields: Vec<(&str, Vec<u8>)> = Vec::new();
    for (name, value) in document.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) if name == "output" && is_encoded => {
                BASE64_STANDARD.decode(text).unwrap_or_default()
            }
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        };
        if !["id", "attempts", "output_encoding", WAITS_FOR, TREES].contains(&name.as_str()) {
            fields.push((name, text));
        }
    }
    let pairs = fields.iter().map(|(name, text)| (name.as_bytes(), text.as_slice()));
    Job::from_hash(id, pairs).map_err(|error| wrong(error.into()))
}
