//! Sources of what goes on while a command runs: the wait for the end of a job, its log as it grows, the parts of a file. In this process
//! each comes from the client library, which is woken at once and lasts through outages of Redis; from a daemon elsewhere it
//! comes by calls.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ApiMethods, job_of, of_rpc, read};
use crate::artifacts::ContentReader;
use crate::cli::input::parsed;
use crate::client::{AwaitedJob, ClientError, LogFollower};
use crate::config::format_duration;
use crate::error::{Error, Exit};
use crate::http::HttpAnswer;
use crate::proto::job::{Job, JobId, JobStatus};
use crate::rpc::{found_file, names_graph};
use crate::store::LogLine;

/// The time of one call that waits: no proxy on the way ends it.
pub(in crate::cli) const CALL_WAIT: Duration = Duration::from_secs(25);
const LOG_POLL: Duration = Duration::from_millis(300);
/// The lines of a log that one call returns at most.
pub(in crate::cli) const LOG_LINES: usize = 1000;
const BLOCK_BYTES: usize = 1 << 20;

/// The error of a wait that did not see the end of its job.
pub(in crate::cli) struct Unended {
    pub(in crate::cli) error: Error,
    /// True if the time to wait is over and the job goes on.
    pub(in crate::cli) goes_on: bool,
}

impl From<Error> for Unended {
    fn from(error: Error) -> Self {
        Self { error, goes_on: false }
    }
}

impl ApiMethods {
    /// Returns the job that a text names: its id, or the unique beginning of it, which a daemon elsewhere completes itself.
    pub(in crate::cli) async fn job_id(&self, text: &str) -> Result<JobId, Error> {
        match self {
            Self::Local { context, .. } => match context.client.jobs().id(text).await {
                Ok(id) => Ok(id),
                Err(error @ ClientError::NoSuchJob(_)) => {
                    Err(of_rpc(names_graph(context, error.into()).await, None))
                }
                Err(error) => Err(error.into()),
            },
            Self::Remote(_) => parsed(text),
        }
    }

    /// Waits for the end of a job, however it ends. Returns its document, and the job of it.
    pub(in crate::cli) async fn end(
        &self,
        awaited: &AwaitedJob,
        patience: Option<Duration>,
    ) -> Result<(Value, Box<Job>), Unended> {
        let id = &awaited.id;
        match self {
            Self::Local { context, .. } => {
                let ended = context.client.await_end(awaited, patience).await;
                let (output, error) = match ended {
                    Ok(output) => (Some(output), None),
                    Err(ClientError::JobFailed { error, .. }) => (None, Some(error)),
                    Err(error @ ClientError::NoSuchJob(_)) => {
                        return Err(of_rpc(names_graph(context, error.into()).await, None).into());
                    }
                    Err(error) => {
                        let goes_on = matches!(error, ClientError::GaveUp { unknown: None, .. });
                        return Err(Unended { error: of_wait(id, error.into()), goes_on });
                    }
                };
                let job = context.client.get_job(id).await.unwrap_or_else(|_| {
                    let status =
                        if error.is_some() { JobStatus::Error } else { JobStatus::Finished };
                    Job { status, output: output.clone(), ..Job::new(id.clone(), "") }
                });
                // It may be deleted or run again by now: the reply counts.
                Ok((job.to_json(), Box::new(Job { output, error, ..job })))
            }
            Self::Remote(_) => {
                let ended = self.ended(id, patience);
                let Some(patience) = patience else { return ended.await };
                // A daemon that does not answer does not make it longer.
                let most = patience + Duration::from_secs(1);
                let ended = tokio::time::timeout(most, ended).await;
                ended.unwrap_or_else(|_| Err(gave_up(id, patience)))
            }
        }
    }

    async fn ended(
        &self,
        id: &JobId,
        patience: Option<Duration>,
    ) -> Result<(Value, Box<Job>), Unended> {
        let began = Instant::now();
        loop {
            let left = patience.map_or(CALL_WAIT, |most| most.saturating_sub(began.elapsed()));
            let params = json!({ "id": id, "wait": left.min(CALL_WAIT).as_secs_f64() });
            let document =
                self.call("job.wait", params).await.map_err(|error| of_wait(id, error))?;
            let job = job_of(&document)?;
            if job.status.is_terminal() {
                return Ok((document, Box::new(job)));
            }
            if let Some(most) = patience.filter(|most| began.elapsed() >= *most) {
                return Err(gave_up(id, most));
            }
        }
    }

    /// Returns the log of a job after a place, as it grows until the job has ended.
    pub(in crate::cli) fn log(&self, id: &JobId, after: Option<String>) -> JobLog<'_> {
        match self {
            Self::Local { context, .. } => {
                let after = after.unwrap_or_else(|| "0-0".to_owned());
                JobLog::Local(Box::new(context.client.logs().follow_after(id, after)))
            }
            Self::Remote(_) => JobLog::Remote(RemoteLog {
                api: self,
                id: id.to_string(),
                after,
                unfinished: String::new(),
                has_ended: false,
            }),
        }
    }

    pub(in crate::cli) async fn file(&self, id: &str, name: &str) -> Result<JobFileParts, Error> {
        match self {
            Self::Local { context, .. } => {
                let found = found_file(context, id, name).await;
                let found = found.map_err(|error| of_rpc(error, None))?;
                let whole = 0..found.size();
                Ok(JobFileParts::Local(context.client.files().reader(found, whole)?))
            }
            Self::Remote(remote) => remote.file(id, name).await.map(JobFileParts::Remote),
        }
    }
}

/// Adds to an error of a wait what to do.
fn of_wait(id: &JobId, error: Error) -> Error {
    let message = match error.exit {
        Exit::Unavailable => {
            format!("waiting for job {id}: {}; look again: hero job wait {id}", error.message)
        }
        Exit::GaveUp => format!("{}: hero job wait {id}", error.message),
        _ => error.message,
    };
    Error { message, ..error }
}

fn gave_up(id: &JobId, patience: Duration) -> Unended {
    let after = format_duration(patience);
    let message = format!("job {id} has not ended within {after}; it goes on: hero job wait {id}");
    Unended { error: Error::new(Exit::GaveUp, message), goes_on: true }
}

pub(in crate::cli) enum JobLog<'a> {
    Local(Box<LogFollower>),
    Remote(RemoteLog<'a>),
}

pub(in crate::cli) struct RemoteLog<'a> {
    api: &'a ApiMethods,
    id: String,
    after: Option<String>,
    unfinished: String,
    has_ended: bool,
}

impl JobLog<'_> {
    /// Waits for the next lines; none if only the text after them has changed, `None` once the job has ended and its log is
    /// read. Can be cancelled at any time.
    pub(in crate::cli) async fn next(&mut self) -> Result<Option<Vec<LogLine>>, Error> {
        match self {
            Self::Local(log) => Ok(log.next().await?),
            Self::Remote(log) => log.next().await,
        }
    }

    /// Returns the text after the last line that has no line end yet; empty if there is none.
    pub(in crate::cli) fn unfinished(&self) -> &str {
        match self {
            Self::Local(log) => log.unfinished(),
            Self::Remote(log) => &log.unfinished,
        }
    }

    /// Notes that the job has ended: the rest is read without a wait.
    pub(in crate::cli) fn job_ended(&mut self) {
        match self {
            Self::Local(log) => log.job_ended(),
            Self::Remote(log) => log.has_ended = true,
        }
    }
}

impl RemoteLog<'_> {
    async fn next(&mut self) -> Result<Option<Vec<LogLine>>, Error> {
        loop {
            let params = json!({ "id": self.id, "after": self.after, "limit": LOG_LINES });
            let part = self.api.call("job.log", params).await?;
            let lines: Vec<LogLine> = read("job.log", &part["lines"])?;
            self.has_ended |= part["ended"] == true;
            let unfinished = part["unfinished_line"].as_str().unwrap_or_default();
            let has_changed = self.unfinished != unfinished;
            unfinished.clone_into(&mut self.unfinished);
            if let Some(last) = lines.last() {
                self.after = Some(last.id.clone());
                return Ok(Some(lines));
            }
            if self.has_ended {
                return Ok(None);
            }
            if has_changed {
                return Ok(Some(lines));
            }
            tokio::time::sleep(LOG_POLL).await;
        }
    }
}

pub(in crate::cli) enum JobFileParts {
    Local(ContentReader),
    Remote(HttpAnswer),
}

impl JobFileParts {
    /// Returns the next part; `None` at the end.
    pub(in crate::cli) async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Self::Local(reader) => {
                let block = reader.next_block(BLOCK_BYTES);
                Ok(block.map_err(ClientError::from)?)
            }
            Self::Remote(answer) => {
                let part = answer.part().await.map_err(|error| {
                    Error::new(Exit::Unavailable, format!("the file is not whole: {error}"))
                })?;
                Ok(part.map(|part| part.to_vec()))
            }
        }
    }
}
