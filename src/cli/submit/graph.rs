//! `hero submit --graph`: a file of jobs that wait for each other by name.

use std::path::Path;

use crate::cli::input::{self, bad};
use crate::cli::script_files::{folder_of, read_files};
use crate::client::{ClientError, Graph};
use crate::config::{Config, GraphFile, GraphJobFiles, Source};
use crate::error::Error;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Job, JobFiles};

/// The largest file that is read.
const FILE_SIZE_MAX: u64 = 32 << 20;

/// Reads the text of a graph's file, within its bound.
pub(in crate::cli) fn read_file(path: &Path) -> Result<String, Error> {
    input::read_bounded(path, FILE_SIZE_MAX)
}

/// Parses the text of a graph's file.
///
/// # Errors
/// [`crate::error::Exit::Data`] with file, line and column.
pub(in crate::cli) fn parse<'t>(path: &'t Path, text: &'t str) -> Result<Source<'t>, Error> {
    Source::parse(path, text).map_err(bad)
}

/// Reads the jobs of a file, and the files that they name.
///
/// # Errors
/// [`crate::error::Exit::Data`] with file, line and column.
pub(super) fn read<'s>(
    source: &'s Source<'s>,
    path: &Path,
    config: &Config,
) -> Result<(GraphFile<'s>, Graph), Error> {
    let (file, plan) = GraphFile::read(source, path, (&config.types, config.job.script_size_max))?;
    let mut graph = Graph::of(plan).map_err(bad)?;
    for (node, of) in graph.nodes_mut().iter_mut().zip(file.files()) {
        let files = read_inputs(node.job(), of, path, config)?;
        node.files(files);
    }
    Ok((file, graph))
}

/// Reads the graph of a periodic job, which keeps no files.
///
/// # Errors
/// [`crate::error::Exit::Data`] with file, line and column.
pub(in crate::cli) fn read_plan(path: &Path, config: &Config) -> Result<GraphPlan<Job>, Error> {
    let text = read_file(path)?;
    let source = parse(path, &text)?;
    let (file, plan) = GraphFile::read(&source, path, (&config.types, config.job.script_size_max))?;
    file.refuse_files().map_err(bad)?;
    Ok(plan)
}

/// Adds the place in the file to an error of the client.
pub(super) fn explained(file: &GraphFile<'_>, error: ClientError) -> Error {
    let (job, prerequisite) = match &error {
        ClientError::UnknownInGraph { job, prerequisite, .. } => {
            (job.as_str(), Some(prerequisite.as_str()))
        }
        ClientError::Cycle(names) => (names.first().map_or("", String::as_str), None),
        ClientError::Refused { name, .. } => (name.as_str(), None),
        _ => return error.into(),
    };
    let message = file.wrong(job, prerequisite, &error).to_string();
    Error::new(error.exit(), message)
}

/// Reads the files that a job is given, which lie beside the graph's file.
fn read_inputs(
    job: &Job,
    of: &GraphJobFiles<'_>,
    path: &Path,
    config: &Config,
) -> Result<JobFiles, Error> {
    let GraphJobFiles { table, inputs, stdin } = of;
    let folder = folder_of(path);
    let files = inputs.iter().map(|(name, file)| (name.as_str(), folder.join(file)));
    let stdin = stdin.as_ref().map(|file| folder.join(file));
    let key = if inputs.is_empty() { "stdin" } else { "inputs" };
    let files = read_files(&config.job, files, stdin.as_deref()).map_err(|error| {
        let message =
            error.message.replace("--input: ", "").replace("--input and --stdin ", "the job ");
        Error::new(error.exit, table.wrong(key, message).to_string())
    })?;
    let checked = config.check_files(&job.spec, &files);
    checked.map_err(|error| bad(table.wrong(key, error)))?;
    Ok(files)
}
