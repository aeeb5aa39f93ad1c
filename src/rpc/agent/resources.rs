//! Resources of agents: a job, its log and its files, by their addresses.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::results::{decoded, image_type};
use super::{AgentServer, Result, RpcError, agent_code, shown};

/// Begins the addresses of resources.
const SCHEME: &str = "hero://jobs/";
/// The number of jobs on a page of the list of resources.
const LISTED: usize = 20;

pub(super) fn file_uri(id: &str, name: &str) -> String {
    format!("{SCHEME}{id}/files/{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// Returns the type of a file that is no text, by its extension.
pub(super) fn mime_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("pdf") => "application/pdf",
        Some("zip") => "application/zip",
        Some("gz" | "tgz") => "application/gzip",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("parquet") => "application/vnd.apache.parquet",
        Some("xlsx") => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => "application/octet-stream",
    }
}

/// Lists the jobs that the agent may see, the latest first, page by page.
pub(super) async fn list(server: &AgentServer, params: &Value) -> Result<Value> {
    let mut page = json!({ "limit": LISTED });
    if params["cursor"].is_string() {
        page["cursor"] = params["cursor"].clone();
    }
    let found = server.call("job.list", page).await?;
    let jobs = found["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let resource = |job: &Value| {
        let word = |name: &str| job[name].as_str().unwrap_or_default();
        let id = word("id");
        let name = if word("name").is_empty() { id } else { word("name") };
        json!({
            "uri": format!("{SCHEME}{id}"),
            "name": name,
            "description": format!("job {id} of type {}: {}", word("script_type"), word("status")),
            "mimeType": "application/json",
        })
    };
    let mut listed = json!({ "resources": jobs.iter().map(resource).collect::<Vec<_>>() });
    if found["next"].is_string() {
        listed["nextCursor"] = found["next"].clone();
    }
    Ok(listed)
}

/// Lists the forms of addresses.
pub(super) fn templates() -> Value {
    let of = |rest: &str, name: &str, description: &str, mime: Option<&str>| {
        let mut template = json!({
            "uriTemplate": format!("{SCHEME}{{id}}{rest}"), "name": name, "description": description,
        });
        if let Some(mime) = mime {
            template["mimeType"] = json!(mime);
        }
        template
    };
    json!({ "resourceTemplates": [
        of("", "job", "A job: its state, output, error and settings", Some("application/json")),
        of("/log", "log", "The first 1000 lines of the log of a job", Some("text/plain")),
        of("/files/{name}", "file", "A file of a job, of up to 1 MiB", None),
    ] })
}

pub(super) async fn read(server: &AgentServer, params: &Value) -> Result<Value> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let unknown = |why: &str| {
        let message = format!("there is no resource `{}`: {why}", shown(uri));
        RpcError::new(agent_code::NO_RESOURCE, message).with("uri", uri)
    };
    let path =
        uri.strip_prefix(SCHEME).ok_or_else(|| unknown("it does not begin with hero://jobs/"))?;
    let (id, rest) = path.split_once('/').map_or((path, None), |(id, rest)| (id, Some(rest)));
    let of_job = json!({ "id": id });
    let content = match rest {
        None => {
            let job = server.call("job.get", of_job).await?;
            json!({ "uri": uri, "mimeType": "application/json", "text": job.to_string() })
        }
        Some("log") => {
            let found = server.call("job.log", of_job).await?;
            let lines = found["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
            let lines: Vec<&str> = lines.iter().filter_map(|line| line["line"].as_str()).collect();
            json!({ "uri": uri, "mimeType": "text/plain", "text": lines.join("\n") })
        }
        Some(file) => {
            let name = file
                .strip_prefix("files/")
                .ok_or_else(|| unknown("of a job there are log and files/NAME"))?;
            let name = percent_decode_str(name).decode_utf8_lossy();
            let found = server.call("job.file", json!({ "id": id, "name": name })).await?;
            let Some(data) = found["content"].as_str() else {
                let size = &found["size"];
                return Err(unknown(&format!(
                    "its {size} bytes are too many; get_file reads it in parts"
                )));
            };
            let bytes = decoded(data)?;
            let image = image_type(&bytes);
            match String::from_utf8(bytes) {
                Ok(text) => json!({ "uri": uri, "mimeType": "text/plain", "text": text }),
                Err(_) => {
                    json!({ "uri": uri, "mimeType": image.unwrap_or_else(|| mime_of(&name)), "blob": data })
                }
            }
        }
    };
    Ok(json!({ "contents": [content] }))
}
