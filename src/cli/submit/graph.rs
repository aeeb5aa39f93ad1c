//! `hero submit --graph`: a file of jobs that wait for each other by name. Its faults are [`Exit::Data`] with file, line
//! and column.

use std::convert::Infallible;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::api::{MethodError, settings};
use crate::cli::input::{self, bad};
use crate::cli::script_inputs::{folder_of, read_files};
use crate::client::FilesByPlace;
use crate::config::{Config, GraphFile, GraphJobFiles, Source};
use crate::error::{Error, Exit};
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Job, JobFiles};

const FILE_SIZE_MAX: u64 = 32 << 20;

pub(in crate::cli) fn read_file(path: &Path) -> Result<String, Error> {
    input::read_bounded(path, FILE_SIZE_MAX)
}

pub(in crate::cli) fn parse<'t>(path: &'t Path, text: &'t str) -> Result<Source<'t>, Error> {
    Source::parse(path, text).map_err(bad)
}

/// Reads the jobs of a file, and the files that they name, by their places.
pub(super) fn read<'s>(
    source: &'s Source<'s>,
    path: &Path,
    config: &Config,
) -> Result<(GraphFile<'s>, GraphPlan<Job>, FilesByPlace), Error> {
    let (file, plan) = GraphFile::read(source, path, (&config.types, config.job.script_size_max))?;
    let mut files = FilesByPlace::new();
    for (place, (node, of)) in plan.jobs.iter().zip(file.files()).enumerate() {
        let own = read_inputs(&node.job, of, path, config)?;
        if !own.is_empty() {
            files.insert(place, own);
        }
    }
    Ok((file, plan, files))
}

/// Reads the graph of a periodic job, which keeps no files.
pub(in crate::cli) fn read_plan(path: &Path, config: &Config) -> Result<GraphPlan<Job>, Error> {
    let text = read_file(path)?;
    let source = parse(path, &text)?;
    let (file, plan) = GraphFile::read(&source, path, (&config.types, config.job.script_size_max))?;
    file.refuse_files().map_err(bad)?;
    Ok(plan)
}

/// Returns a graph as the methods take it.
pub(in crate::cli) fn params(plan: GraphPlan<Job>) -> Value {
    json!(plan.map(|_, job| Ok::<_, Infallible>(settings(&job))).ok())
}

/// Adds the place in the file to an error about a job.
pub(super) fn explained(file: &GraphFile<'_>, MethodError { error, data }: MethodError) -> Error {
    let named = data["name"].as_str().or(data["cycle"][0].as_str());
    let Some(job) = named else { return error };
    let message = file.wrong(job, data["prerequisite"].as_str(), error.message).to_string();
    // What is missing is named by the file.
    let exit = if error.exit == Exit::NotFound { Exit::Data } else { error.exit };
    Error::new(exit, message)
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
