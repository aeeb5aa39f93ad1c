//! `hero job tell`: tells a job an event that its script waits for.

use std::io::Read;

use clap::Args;
use serde_json::json;

use crate::cli::Global;
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::store::Blocker;

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
    pub(super) async fn run(self, client: &Client, global: &Global) -> Result<(), Error> {
        let data = self.data.map(read).transpose()?;
        let id = client.job_id(&self.id).await?;
        let waited = client.tell_job(&id, &self.event, data.as_deref()).await?;
        let blocker = if waited { None } else { client.blocker(&id).await? };
        let now = match blocker {
            Some(Blocker::Wait(wait)) => format!("; now it waits for {}", wait.words()),
            _ => String::new(),
        };
        let result = if waited { "told" } else { "kept" };
        global.print(
            || json!({ "id": id, "result": result }),
            || {
                if waited {
                    format!("{id} told {}\n", self.event)
                } else {
                    format!("{id} keeps {} for its next wait{now}\n", self.event)
                }
            },
        )
    }
}

/// Returns the JSON that is given, or that a file has.
pub(super) fn read(given: String) -> Result<String, Error> {
    // Enough for the longest value with space between its parts.
    const FILE_BYTES_MAX: u64 = 1 << 20;
    let Some(file) = given.strip_prefix('@') else { return Ok(given) };
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| {
            Error::new(
                Exit::Data,
                format!("cannot read the data of the event from {file}: {error}"),
            )
        })?;
    Ok(text)
}
