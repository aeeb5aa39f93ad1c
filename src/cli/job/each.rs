//! Applies an operation to each of the named jobs.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::input::parsed;
use crate::cli::{Global, output};
use crate::client::{ChangedJob, Client, ClientError};
use crate::error::{Error, Exit};
use crate::proto::job::JobId;

/// Applies an operation that may concern further jobs to each job, also after failures. The exit code
/// comes from the first failure.
pub(super) async fn apply(
    client: &Client,
    ids: &[String],
    global: &Global,
    act: impl AsyncFn(&JobId) -> Result<Vec<ChangedJob>, ClientError>,
) -> Result<ExitCode, Error> {
    let ids: Vec<JobId> = ids.iter().map(|id| parsed(id)).collect::<Result<_, _>>()?;
    let mut document = Vec::new();
    let mut worst = Exit::Ok;
    for id in ids {
        let told = match client.job_id(id.as_str()).await {
            Ok(id) => act(&id).await.unwrap_or_else(|error| vec![(id, Err(error))]),
            Err(error) => vec![(id, Err(error))],
        };
        for (id, result) in told {
            match result.map_err(Error::from) {
                Ok(done) if global.json => document.push(json!({ "id": id, "result": done })),
                Ok(done) => output::line(&format!("{id} {done}"))?,
                Err(error) => {
                    output::print_error(&error);
                    document.push(json!({ "id": id, "problem": error.message }));
                    worst = if worst == Exit::Ok { error.exit } else { worst };
                }
            }
        }
    }
    if global.json {
        output::json(&json!({ "jobs": document }))?;
    }
    Ok(worst.into())
}
