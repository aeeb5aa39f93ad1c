//! `job.files` and `job.file`: the files of a job.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::method::CallContext;
use super::super::rpc_error::{RpcError, code};
use super::params::{OneJob, Spelled};
use crate::client::JobFile;
use crate::proto::job::{FileName, Job, JobFiles, JobId, STDIN};

/// The largest file of an answer: it is in memory, in Base64 too.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Files in Base64, by their names.
pub(super) type GivenFiles = BTreeMap<String, String>;

/// Reads the files of a job to submit.
pub(super) fn given_files(
    context: &CallContext,
    job: &Job,
    inputs: GivenFiles,
    stdin: Option<String>,
) -> Result<JobFiles, RpcError> {
    let mut files = JobFiles::clone(&context.files);
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

fn decoded(field: &str, text: &str) -> Result<Vec<u8>, RpcError> {
    BASE64_STANDARD.decode(text).map_err(|error| wrong(field, &format!("no Base64: {error}")))
}

fn wrong(field: &str, why: &str) -> RpcError {
    RpcError::wrong(field, format!("`{field}`: {why}"))
}

/// The files of a job.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ListedFiles {
    /// The id of the job.
    pub(crate) id: String,
    /// Its files, those that its script left first.
    pub(crate) files: Vec<JobFile>,
}

pub(super) async fn files(context: CallContext, given: OneJob) -> Result<ListedFiles, RpcError> {
    let seen = context.seen(given.id).await?;
    let files = context.client.job_files(&seen.id).await;
    let files = context.still(&seen, files).await?;
    Ok(ListedFiles { id: seen.id.to_string(), files })
}

/// A file of a job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneFile {
    /// The id of the job.
    id: Spelled<JobId>,
    /// The name of the file; `-` is the standard input.
    name: String,
}

/// The content of a file.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileContent {
    /// The name of the file.
    pub(crate) name: String,
    /// The content in Base64.
    pub(crate) content: String,
}

pub(super) async fn file(context: CallContext, given: OneFile) -> Result<FileContent, RpcError> {
    let (seen, name) = (context.seen(given.id).await?, given.name);
    let id = &seen.id;
    let found = if name == STDIN {
        context.client.job_stdin(id).await
    } else {
        let file: FileName = name.parse().map_err(|error| wrong("name", &format!("{error}")))?;
        context.client.job_file(id, &file).await
    };
    let Some(found) = context.still(&seen, found).await? else {
        let message = format!("job {id} has no file `{name}`; job.files lists its files");
        return Err(RpcError::new(code::NOT_FOUND, message).with("id", id.as_str()));
    };
    let bytes = context.client.file_bytes(found, ANSWER_BYTES_MAX).await?;
    Ok(FileContent { name, content: BASE64_STANDARD.encode(bytes) })
}
