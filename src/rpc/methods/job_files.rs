//! `job.files` and `job.file`: the files of a job. `job.log`: its log.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::follow::{LoggedLine, StreamPlace};
use super::params::{OneJob, Time, page_size};
use super::{CallContext, Result, RpcError, code};
use crate::client::JobFile;
use crate::proto::job::{
    FILES_NOT_KEPT, FileBody, FileName, Job, JobFiles, JobId, JobReference, STDIN,
};
use crate::store::LogLine;

/// The largest file that comes in an answer, where it is in memory as a whole, in Base64 too.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The lines of a log that one call returns.
const LINES_MAX: usize = 1000;

/// Files in Base64, by their names.
pub(super) type EncodedFiles = BTreeMap<String, String>;

/// Reads the files of a job to submit, which has this place in its call.
pub(super) fn given_files(
    context: &CallContext,
    (place, job): (usize, &Job),
    inputs: EncodedFiles,
    stdin: Option<String>,
) -> Result<JobFiles> {
    let mut files = context.files.get(&place).cloned().unwrap_or_default();
    for (name, text) in inputs {
        let bytes = decoded("inputs", &text)?;
        let name: FileName = name.parse().map_err(|error| wrong("inputs", &format!("{error}")))?;
        files.inputs.insert(name, bytes.into());
    }
    if let Some(text) = stdin {
        files.stdin = Some(decoded("stdin", &text)?.into());
    }
    context.config.check_files(&job.spec, &files)?;
    Ok(files)
}

fn decoded(field: &str, text: &str) -> Result<Vec<u8>> {
    BASE64_STANDARD.decode(text).map_err(|error| wrong(field, &format!("no Base64: {error}")))
}

fn wrong(field: &str, why: &str) -> RpcError {
    RpcError::wrong(field, format!("`{field}`: {why}"))
}

/// The files of a job.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ListedFiles {
    /// The id of the job.
    pub(crate) id: String,
    /// Its files, those that its script left first.
    pub(crate) files: Vec<JobFile>,
    /// The files that its script left and that are not kept, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files_not_kept: Option<String>,
}

pub(super) async fn files(context: CallContext, params: OneJob) -> Result<ListedFiles> {
    let seen = context.seen(params.id).await?;
    let listed = async {
        let files_not_kept = context.client.get_job(&seen.id).await?.extra.remove(FILES_NOT_KEPT);
        Ok((context.client.files().list(&seen.id).await?, files_not_kept))
    };
    let (files, files_not_kept) = context.still(&seen, listed.await).await?;
    Ok(ListedFiles { id: seen.id.to_string(), files, files_not_kept })
}

/// A file of a job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneFile {
    /// The id of the job.
    id: JobReference,
    /// The name of the file; `-` is the standard input.
    name: String,
}

/// The content of a file, or where to get it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileContent {
    /// The name of the file.
    pub(crate) name: String,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The content in Base64, of a file of up to 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// The path of a larger file below the address of the API: GET it, whole or by ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

pub(super) async fn file(context: CallContext, params: OneFile) -> Result<FileContent> {
    let name = params.name;
    let (id, found) = find(&context, params.id, &name).await?;
    let size = found.size();
    if size > ANSWER_BYTES_MAX {
        let path = format!("/jobs/{id}/files/{}", utf8_percent_encode(&name, NON_ALPHANUMERIC));
        return Ok(FileContent { name, size, content: None, path: Some(path) });
    }
    let bytes = context.client.files().bytes(found, ANSWER_BYTES_MAX).await?;
    Ok(FileContent { name, size, content: Some(BASE64_STANDARD.encode(bytes)), path: None })
}

/// Finds a file of a job that the caller may see.
pub(crate) async fn found_file(context: &CallContext, id: &str, name: &str) -> Result<FileBody> {
    let id: JobReference = id.parse().map_err(|error| wrong("id", &format!("{error}")))?;
    Ok(find(context, id, name).await?.1)
}

async fn find(context: &CallContext, id: JobReference, name: &str) -> Result<(JobId, FileBody)> {
    let seen = context.seen(id).await?;
    let id = &seen.id;
    let found = if name == STDIN {
        context.client.files().stdin(id).await
    } else {
        let file: FileName = name.parse().map_err(|error| wrong("name", &format!("{error}")))?;
        context.client.files().get(id, &file).await
    };
    let Some(found) = context.still(&seen, found).await? else {
        let message = format!("job {id} has no file `{name}`; job.files lists its files");
        return Err(RpcError::new(code::NOT_FOUND, message).with("id", id.as_str()));
    };
    Ok((seen.id, found))
}

/// A part of a job's log.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadLog {
    /// The id of the job.
    id: JobReference,
    /// Only lines after the one with this id, such as `next` of the part before.
    after: Option<String>,
    /// Only lines since this time.
    since: Option<Time>,
    /// The maximum number of lines, up to 1000; 1000 without it.
    limit: Option<usize>,
    /// The last lines of the log in place of the first; without `after` and `since`.
    #[serde(default)]
    last: bool,
}

/// Lines of a job's log.
#[derive(Serialize, JsonSchema)]
pub(super) struct LogPart {
    /// The id of the job.
    id: String,
    /// The lines.
    lines: Vec<LoggedLine>,
    /// The value of `after` for the next part: set if there may be more already.
    next: Option<String>,
    /// The text after the last line that has no line end yet, such as a question; left out if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    unfinished_line: String,
    /// True if the job has ended or was deleted: without `next` these are its last lines.
    ended: bool,
}

pub(super) async fn log(context: CallContext, params: ReadLog) -> Result<LogPart> {
    let limit = page_size(params.limit.or(Some(LINES_MAX)), LINES_MAX)?;
    let after = params.after.or_else(|| params.since.map(|Time(time)| LogLine::place_before(time)));
    if after.as_ref().is_some_and(|place| place.parse::<StreamPlace>().is_err()) {
        let message = "`after` is not the id of a log line, such as 1790000000000-0";
        return Err(RpcError::wrong("after", message));
    }
    if params.last && after.is_some() {
        return Err(RpcError::wrong("last", "`last` goes with neither `after` nor `since`"));
    }
    let seen = context.seen(params.id).await?;
    let client = &context.client;
    // The log is complete before a job has ended.
    let state = client.jobs().state_and_unfinished(&seen.id).await?;
    let lines = if params.last {
        client.logs().last(&seen.id, limit).await
    } else {
        client.get_job_logs(&seen.id, after.as_deref(), limit).await
    };
    let lines = context.still(&seen, lines).await?;
    let is_part = lines.len() == limit && !params.last;
    let next = lines.last().filter(|_| is_part).map(|line| line.id.clone());
    Ok(LogPart {
        id: seen.id.to_string(),
        lines: lines.into_iter().map(LoggedLine::from).collect(),
        next,
        ended: state.as_ref().is_none_or(|(status, _)| status.is_terminal()),
        unfinished_line: state.map(|(_, text)| text).unwrap_or_default(),
    })
}
