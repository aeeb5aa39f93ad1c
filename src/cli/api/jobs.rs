//! Jobs as the methods take and return them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::{ApiMethods, MethodError, read};
use crate::cli::input::bad;
use crate::cli::job_options::{self, of_field};
use crate::client::{AwaitedJob, ClientError, FilesByPlace};
use crate::config::format_duration;
use crate::error::{Error, Exit};
use crate::proto::job::{FileBody, Job, JobFiles, JobId, Params, TREES, WAITS_FOR, json_of_field};
use crate::proto::named_script::{Parameters, ScriptUse};
use crate::proto::target::IllegalName;
use crate::rpc::results::SubmittedId;
use crate::rpc::submitted_awaited;

impl ApiMethods {
    /// Submits a job with its files. Returns it, or the one that is there in its place, and whether it is new.
    pub(in crate::cli) async fn submit(
        &self,
        job: &Job,
        files: JobFiles,
        is_awaited: bool,
    ) -> Result<(AwaitedJob, bool), Error> {
        let (params, files) = (json!({ "job": settings(job) }), FilesByPlace::from([(0, files)]));
        let submitted = match self {
            Self::Local { context, .. } if is_awaited => {
                let context = (**context).clone().with_files(files);
                let submitted = Box::pin(submitted_awaited(context, params)).await;
                return submitted.map_err(|error| of_option(MethodError::of(error, None)));
            }
            _ => self.answer("job.submit", params, files).await,
        };
        let document = submitted.map_err(|failed| {
            let error = of_option(failed);
            let unsure = error.exit == Exit::Unavailable && matches!(self, Self::Remote(_));
            let hint = "; whether the job was accepted is not known: hero job list";
            let hint = if unsure { hint } else { "" };
            Error::new(error.exit, format!("{}{hint}", error.message))
        })?;
        let SubmittedId { id, created } = read("job.submit", &document)?;
        let id: JobId = id.parse().map_err(|error| no_job(&error))?;
        Ok((id.into(), created))
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

/// Names the option of the setting that an error is about.
fn of_option(MethodError { error, data }: MethodError) -> Error {
    let field = data["field"].as_str().unwrap_or_default();
    match error.message.strip_prefix(&format!("invalid job: {field} ")) {
        Some(reason) => Error { message: of_field(field, reason), ..error },
        None => error,
    }
}

/// Adds files to a job of a call, in Base64.
pub(super) fn add_files(job: &mut Value, files: &JobFiles) -> Result<(), Error> {
    let encoded = |body: &FileBody| match body {
        FileBody::Bytes(bytes) => Ok(BASE64_STANDARD.encode(bytes)),
        FileBody::Artifact(_) => Err(bad(
            "the API takes no file of this size beside a job; put it where the actors find it",
        )),
    };
    for (name, body) in &files.inputs {
        job["inputs"][name.as_str()] = encoded(body)?.into();
    }
    if let Some(body) = &files.stdin {
        job["stdin"] = encoded(body)?.into();
    }
    Ok(())
}

fn no_job(error: &IllegalName) -> Error {
    Error::new(Exit::Unavailable, format!("the answer is no job: {error}"))
}

pub(in crate::cli) fn job_of(document: &Value) -> Result<Job, Error> {
    let wrong = |error: ClientError| job_options::of_option(error);
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
