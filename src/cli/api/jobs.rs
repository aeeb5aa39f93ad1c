//! Jobs over the API: submitted, awaited, their logs followed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::{ApiMethods, read};
use crate::cli::job_options::{JobOptions, of_option};
use crate::cli::output;
use crate::client::ClientError;
use crate::config::{Config, format_duration};
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::job::{FileBody, Job, JobId, json_of_field};
use crate::proto::target::IllegalName;
use crate::rpc::results::SubmittedId;
use crate::store::LogLine;

/// The time of one call that waits: no proxy on the way ends it.
pub(in crate::cli) const CALL_WAIT: Duration = Duration::from_secs(25);
/// The time between two calls for a log.
const LOG_POLL: Duration = Duration::from_millis(300);
/// The lines of a log that one call returns at most.
const LOG_LINES: usize = 1000;

/// The end of a wait.
pub(in crate::cli) enum RemoteEnd {
    /// The job has ended; its document, and the job of it.
    Ended(Value, Box<Job>),
    /// The time to wait is over.
    GaveUp,
    /// A signal ended the wait.
    Interrupted(ExitCode),
}

impl ApiMethods {
    /// Submits the job of the options with its files. Returns its id, and whether it is new.
    pub(in crate::cli) async fn submit(
        &self,
        options: &JobOptions,
        config: &Config,
    ) -> Result<(JobId, bool, Job), Error> {
        let job = options.job(config)?;
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

    /// Waits for the end of a job. Its log goes to standard error meanwhile, if it is shown.
    pub(in crate::cli) async fn await_end(
        &self,
        id: &str,
        shows_log: bool,
        patience: Option<Duration>,
    ) -> Result<RemoteEnd, Error> {
        let mut interrupts = Interrupts::listen()?;
        let mut log = RemoteLog::new(self, id, None);
        let ended = tokio::select! {
            ended = self.ended(id, patience) => ended?,
            failed = log.show(), if shows_log => return Err(failed),
            () = deadline(patience) => return Ok(RemoteEnd::GaveUp),
            signal = interrupts.next() => {
                output::note(&format!(
                    "hero: stopped waiting; job {id} goes on: hero job wait {id}, hero job stop {id}"
                ));
                return Ok(RemoteEnd::Interrupted(ExitCode::from(output::SIGNALLED + signal)));
            }
        };
        if shows_log {
            log.show_rest().await?;
        }
        Ok(ended)
    }

    async fn ended(&self, id: &str, patience: Option<Duration>) -> Result<RemoteEnd, Error> {
        let began = Instant::now();
        loop {
            let left = patience.map_or(CALL_WAIT, |most| most.saturating_sub(began.elapsed()));
            let wait = left.min(CALL_WAIT);
            let params = json!({ "id": id, "wait": wait.as_secs_f64() });
            let document = self.call("job.wait", params).await?;
            let job = job_of(&document)?;
            if job.status.is_terminal() {
                return Ok(RemoteEnd::Ended(document, Box::new(job)));
            }
            if patience.is_some_and(|most| began.elapsed() >= most) {
                return Ok(RemoteEnd::GaveUp);
            }
        }
    }
}

/// Ends a moment after a time to wait: a daemon that does not answer does not make it longer.
async fn deadline(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience + Duration::from_secs(1)).await,
        None => std::future::pending().await,
    }
}

/// The error of a wait that is over.
pub(in crate::cli) fn gave_up(id: &str, patience: Option<Duration>) -> Error {
    let after = patience.map(format_duration).unwrap_or_default();
    let message = format!("job {id} has not ended within {after}; it goes on: hero job wait {id}");
    Error::new(Exit::GaveUp, message)
}

/// The log of a job.
pub(in crate::cli) struct RemoteLog<'a> {
    api: &'a ApiMethods,
    id: &'a str,
    after: Option<String>,
}

impl<'a> RemoteLog<'a> {
    pub(in crate::cli) fn new(api: &'a ApiMethods, id: &'a str, after: Option<String>) -> Self {
        Self { api, id, after }
    }

    /// Returns the lines that have come since; none if there are no others yet.
    pub(in crate::cli) async fn next(&mut self) -> Result<Vec<LogLine>, Error> {
        let params = json!({ "id": self.id, "after": self.after, "limit": LOG_LINES });
        let part = self.api.call("job.log", params).await?;
        let lines: Vec<LogLine> = read("job.log", &part["lines"])?;
        self.after = lines.last().map(|line| line.id.clone()).or(self.after.take());
        Ok(lines)
    }

    /// Returns lines once there are some.
    pub(in crate::cli) async fn grown(&mut self) -> Result<Vec<LogLine>, Error> {
        loop {
            let lines = self.next().await?;
            if !lines.is_empty() {
                return Ok(lines);
            }
            tokio::time::sleep(LOG_POLL).await;
        }
    }

    /// Shows what stands beside the output, as it comes; returns the error that ends it.
    async fn show(&mut self) -> Error {
        loop {
            match self.grown().await {
                Ok(lines) => lines.iter().for_each(show),
                Err(error) => return error,
            }
        }
    }

    async fn show_rest(&mut self) -> Result<(), Error> {
        loop {
            let lines = self.next().await?;
            lines.iter().for_each(show);
            if lines.len() < LOG_LINES {
                return Ok(());
            }
        }
    }
}

fn show(line: &LogLine) {
    if line.progress.is_none() && !line.output {
        output::log_note(&line.line);
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
        if !["id", "attempts", "output_encoding"].contains(&name.as_str()) {
            fields.push((name, text));
        }
    }
    let pairs = fields.iter().map(|(name, text)| (name.as_bytes(), text.as_slice()));
    Job::from_hash(id, pairs).map_err(|error| wrong(error.into()))
}
