//! The output and files of a job, as an agent reads them: the result of a run, its output, and its files in parts.

use serde_json::{Map, Value, json};

use super::super::methods::found_file;
use super::resources::{file_uri, mime_of};
use super::results::{
    TEXT_BYTES, WrittenBytes, cut, decoded, image_type, output_of, repeated, result, tail, text,
};
use super::{AgentServer, Result, RpcError, code};

/// The most bytes of a file that one call returns.
const PART_BYTES_MAX: u64 = 1 << 20;
/// The fewest, so that a part has a character.
const PART_BYTES_MIN: u64 = 16;
/// The lines and bytes of a log that come with the end of a script.
const LOG_LINES: usize = 200;
const LOG_BYTES: usize = 16 << 10;
/// The most files that the end of a script names.
const FILES_MAX: usize = 20;

struct AskedPart {
    offset: u64,
    limit: u64,
}

impl AskedPart {
    /// Takes the arguments `offset` and `limit`.
    fn take(arguments: &mut Map<String, Value>) -> Result<Self> {
        let mut number = |name: &str, default: u64, least: u64| match arguments.remove(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value.as_u64().filter(|number| *number >= least).ok_or_else(|| {
                RpcError::wrong(
                    name,
                    format!("`{name}` must be a whole number of at least {least}"),
                )
            }),
        };
        let offset = number("offset", 0, 0)?;
        let limit = number("limit", TEXT_BYTES as u64, PART_BYTES_MIN)?.min(PART_BYTES_MAX);
        Ok(Self { offset, limit })
    }

    /// Returns its bytes of a whole.
    fn of<'w>(&self, whole: &'w [u8]) -> &'w [u8] {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
        &whole[place(self.offset)..place(self.offset.saturating_add(self.limit))]
    }
}

/// The schema of the arguments of [`AskedPart`].
pub(super) fn part_schema() -> [(&'static str, Value); 2] {
    let of = |text: &str| json!({ "description": text, "type": "integer", "minimum": 0 });
    [
        ("offset", of("The byte to begin at; 0 without it")),
        ("limit", of("The maximum number of bytes of text, up to 1 MiB; 32 KiB without it")),
    ]
}

/// The tool that reads a file of a job.
pub(super) async fn file(server: &AgentServer, mut arguments: Map<String, Value>) -> Result<Value> {
    let part = AskedPart::take(&mut arguments)?;
    let found = server.call("job.file", Value::Object(arguments.clone())).await?;
    let of = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, name) = (of("id"), of("name"));
    let size = found["size"].as_u64().unwrap_or_default();
    let bytes = match found["content"].as_str() {
        Some(content) => decoded(content)?,
        None => large(server, (id, name), &part, size).await?,
    };
    let is_whole = bytes.len() as u64 == size;
    let is_image = is_whole && part.offset == 0 && image_type(&bytes).is_some();
    let own = if is_whole && !is_image { part.of(&bytes) } else { &bytes };
    let written = WrittenBytes { size, offset: part.offset, part: own, tool: "get_file" };
    let mut about = json!({ "name": name, "size": size });
    let content = if let Some(content) = written.content() {
        if let Some((_, next)) = written.text().filter(|_| !is_image) {
            about["offset"] = json!(written.offset);
            about["next"] = json!((next < size).then_some(next));
        }
        content
    } else {
        let mime = mime_of(name);
        about["mime_type"] = json!(mime);
        let link = json!({
            "type": "resource_link", "uri": file_uri(id, name), "name": name, "size": size, "mimeType": mime,
        });
        vec![link, text(&format!("`{name}` is no text: {size} bytes, {mime}"))]
    };
    Ok(result(false, &content, Some(&about)))
}

/// Reads a part of a file that comes in no answer of the API as a whole. The caller may read it.
async fn large(
    server: &AgentServer,
    (id, name): (&str, &str),
    part: &AskedPart,
    size: u64,
) -> Result<Vec<u8>> {
    let found = found_file(&server.context, id, name).await?;
    let from = part.offset.min(size);
    let range = from..from.saturating_add(part.limit).min(size);
    let mut reader = server.context.client.files().reader(found, range)?;
    let read = move || {
        let mut bytes = Vec::new();
        while let Some(block) = reader.next_block(TEXT_BYTES)? {
            bytes.extend(block);
        }
        Ok(bytes)
    };
    let done = tokio::task::spawn_blocking(read).await;
    let failed = |why: String| {
        RpcError::new(code::INTERNAL, format!("cannot read `{name}` of job {id}: {why}"))
    };
    let read: Result<Vec<u8>, crate::artifacts::ArtifactError> =
        done.map_err(|error| failed(error.to_string()))?;
    read.map_err(|error| failed(error.to_string()))
}

/// The tool that reads the output of a job.
pub(super) async fn output(
    server: &AgentServer,
    mut arguments: Map<String, Value>,
) -> Result<Value> {
    let part = AskedPart::take(&mut arguments)?;
    let found = server.call("job.output", Value::Object(arguments)).await?;
    let bytes = output_of(&found)?;
    let size = bytes.len() as u64;
    let own = WrittenBytes { size, offset: part.offset, part: part.of(&bytes), tool: "job_output" };
    let content = own.content().unwrap_or_else(|| vec![text(&no_text(size))]);
    Ok(result(false, &content, Some(&json!({ "size": size, "offset": part.offset }))))
}

pub(super) fn no_text(size: u64) -> String {
    format!(
        "the output is no text: {size} bytes; a script leaves such data in a file in $HERO_OUTPUT_DIR, for get_file"
    )
}

/// Returns the last lines of the log of a job. Without an answer there are none: its error is known.
pub(super) async fn end_of_log(server: &AgentServer, id: &Value, lines: usize) -> String {
    let params = json!({ "id": id, "last": true, "limit": lines });
    let log = server.call("job.log", params).await.unwrap_or_default();
    let lines = log["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = lines.iter().filter(|line| line.get("progress").is_none());
    texts.filter_map(|line| line["line"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The result of a script: its output and the names of its files; or its error and the last lines of its log.
pub(super) async fn ended(server: &AgentServer, job: &Value) -> Result<Value> {
    let params = json!({ "id": job["id"] });
    let log = end_of_log(server, &job["id"], LOG_LINES).await;
    let log = tail(&log, LOG_BYTES);
    let mut about = json!({ "id": job["id"], "status": job["status"] });
    if let Some(code) = job.get("exit_code") {
        about["exit_code"] = code.clone();
    }
    for (name, value) in [("log", Some(log)), ("error", job["error"].as_str())] {
        if let Some(value) = value.and_then(repeated) {
            about[name] = json!(value);
        }
    }
    let word = |name: &str| job[name].as_str().unwrap_or_default();
    let (mut content, is_error) = match word("status") {
        "finished" => (finished(job, &mut about)?, false),
        "error" => {
            let (error, _) = cut(word("error"), LOG_BYTES);
            (vec![text(&format!("{error}\n{log}"))], true)
        }
        status => {
            let id = word("id");
            let message =
                format!("job {id} is {status} and goes on: wait_job, follow_job or stop_job");
            let mut content = vec![text(&message)];
            if let Some(blocker) = job["waits_for"].as_str() {
                about["waits_for"] = json!(blocker);
                content.push(text(&format!("it waits for {blocker}")));
            }
            (content, false)
        }
    };
    let files = server.call("job.files", params).await.unwrap_or_default();
    content.extend(left_files(&files, &mut about));
    Ok(result(is_error, &content, Some(&about)))
}

/// The output of a script that finished.
fn finished(job: &Value, about: &mut Value) -> Result<Vec<Value>> {
    let bytes = output_of(job)?;
    let size = bytes.len() as u64;
    let end = bytes.len().min(TEXT_BYTES);
    let whole = WrittenBytes { size, offset: 0, part: &bytes, tool: "job_output" };
    let start = WrittenBytes { size, offset: 0, part: &bytes[..end], tool: "job_output" };
    about["output_bytes"] = json!(size);
    if let Some((output, _)) = whole.text()
        && let Some(output) = repeated(output)
    {
        about["output"] = json!(output);
    }
    let shown = if whole.image().is_some() { whole } else { start };
    Ok(shown.content().unwrap_or_else(|| vec![text(&no_text(size))]))
}

/// Names the files that a script left, if it left some.
fn left_files(files: &Value, about: &mut Value) -> Option<Value> {
    let all = files["files"].as_array()?;
    let left: Vec<&Value> = all.iter().filter(|file| file["kind"] == "output").collect();
    if left.is_empty() {
        return None;
    }
    let with_size = |file: &&Value| {
        format!("{} ({} bytes)", file["name"].as_str().unwrap_or_default(), file["size"])
    };
    let mut names: Vec<String> = left.iter().take(FILES_MAX).map(with_size).collect();
    if left.len() > FILES_MAX {
        names.push(format!("{} more: job_files", left.len() - FILES_MAX));
    }
    about["files"] = json!(left.iter().take(FILES_MAX).collect::<Vec<_>>());
    Some(text(&format!("files for get_file: {}", names.join(", "))))
}

/// The result of a script that ran in a session: what it wrote.
pub(super) fn ran_in_session(ran: &Value) -> Value {
    let written = ran["output"].as_str().unwrap_or_default();
    let is_error = ran["exit_code"] != 0;
    let mut about = ran.clone();
    let last = tail(written, TEXT_BYTES);
    if repeated(written).is_none()
        && let Some(members) = about.as_object_mut()
    {
        members.remove("output");
        members.insert("cut_bytes".to_owned(), json!(written.len() - last.len()));
    }
    let said = match (is_error, last) {
        (true, "") => format!("exit code {}", ran["exit_code"]),
        (_, last) => last.to_owned(),
    };
    result(is_error, &[text(&said)], Some(&about))
}
