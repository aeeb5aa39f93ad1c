//! `hero job tell`: tells a job an event that its script waits for.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Global;
use crate::cli::api::ApiMethods;
use crate::cli::input::{bad, read_bounded};
use crate::error::Error;
use crate::proto::text::escape_lines;

/// Tell a job an event that its script waits for
///
/// The job runs again with the event in `HERO_EVENT`: its name, its data, who told it and when. One that the job does
/// not wait for yet is kept for its next wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job tell 7f9c2ba4 approved\n  \
                        hero job tell 7f9c2ba4 approved --data '{\"until\": \"18:00\"}'\n  \
                        hero job tell 7f9c2ba4 report --data @report.json")]
pub(in crate::cli) struct TellJob {
    /// The job
    pub(super) id: String,
    /// The name of the event
    pub(super) event: String,
    /// A value for the script: JSON, or @FILE with JSON, up to 64 KiB
    #[arg(long, value_name = "JSON|@FILE")]
    pub(super) data: Option<String>,
}

impl TellJob {
    pub(super) async fn run(self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let data =
            self.data.map(read).transpose()?.map(|text| serde_json::from_str::<Value>(&text));
        let data = data.transpose();
        let data = data.map_err(|error| bad(format!("--data is no JSON: {error}")))?;
        let params = json!({ "event": self.event, "data": data });
        let document = api.of_job("job.tell", &self.id, params).await?;
        let id = document["id"].as_str().unwrap_or_default();
        let now = document["waits_for"].as_str().map(|wait| format!("; now it waits for {wait}"));
        let text = || {
            let event = &self.event;
            escape_lines(&if document["result"] == "told" {
                format!("{id} told {event}\n")
            } else {
                format!("{id} keeps {event} for its next wait{}\n", now.unwrap_or_default())
            })
        };
        global.print(|| document.clone(), text)
    }
}

/// Returns the JSON that is given, or that a file has.
fn read(given: String) -> Result<String, Error> {
    // Enough for the longest value with space between its parts.
    const FILE_BYTES_MAX: u64 = 1 << 20;
    match given.strip_prefix('@') {
        Some(file) => read_bounded(Path::new(file), FILE_BYTES_MAX),
        None => Ok(given),
    }
}
