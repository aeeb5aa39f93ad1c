//! Applies an operation to each of the named jobs.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::input::parsed;
use crate::cli::{Global, output};
use crate::client::{ChangedJob, Client, ClientError};
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobReference};
use crate::proto::text::escape_lines;

/// Applies an operation that may concern further jobs to each job, also after failures. The exit code
/// comes from the first failure.
pub(super) async fn apply(
    client: &Client,
    ids: &[String],
    global: &Global,
    act: impl AsyncFn(&JobId) -> Result<Vec<ChangedJob>, ClientError>,
) -> Result<ExitCode, Error> {
    let named: Vec<JobReference> = ids.iter().map(|id| parsed(id)).collect::<Result<_, _>>()?;
    let mut results = ChangeResults::new(global);
    for of in named {
        let changed = match client.job_id_among(&of, None, |_| true).await {
            Ok(id) => act(&id).await.unwrap_or_else(|error| vec![(id, Err(error))]),
            Err(error) => vec![(of.id, Err(error))],
        };
        for (id, result) in changed {
            results.add(id.as_str(), result.map_err(Error::from))?;
        }
    }
    results.end()
}

/// The results of a change of jobs, printed as they come. The exit code comes from the first failure.
pub(super) struct ChangeResults<'g> {
    global: &'g Global,
    document: Vec<Value>,
    exit: Exit,
}

impl<'g> ChangeResults<'g> {
    pub(super) fn new(global: &'g Global) -> Self {
        Self { global, document: Vec::new(), exit: Exit::Ok }
    }

    pub(super) fn add(&mut self, id: &str, result: Result<String, Error>) -> Result<(), Error> {
        match result {
            Ok(done) if self.global.json => {
                self.document.push(json!({ "id": id, "result": done }));
            }
            Ok(done) => output::line(&escape_lines(&format!("{id} {done}")))?,
            Err(error) => {
                output::print_error(&error);
                self.document.push(json!({ "id": id, "problem": error.message }));
                self.exit = if self.exit == Exit::Ok { error.exit } else { self.exit };
            }
        }
        Ok(())
    }

    pub(super) fn end(self) -> Result<ExitCode, Error> {
        if self.global.json {
            output::json(&json!({ "jobs": self.document }))?;
        }
        Ok(self.exit.into())
    }
}
