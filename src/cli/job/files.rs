//! `hero job files` and `hero job fetch`: the files of a job.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::answer::NoResults;
use crate::cli::api::{ApiMethods, JobFileParts, read};
use crate::cli::table::TextTable;
use crate::cli::{Global, output};
use crate::client::JobFile;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{FileName, STDIN};
use crate::rpc::results::ListedFiles;
use crate::store::FileSide;

/// List the files of a job: those that its script left, and those that it was given
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job files 7f9c2ba4")]
pub(in crate::cli) struct ListFiles {
    /// The job
    pub(super) id: String,
}

/// Write a file of a job into the current folder, or where --output says
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job fetch 7f9c2ba4 report.pdf\n  \
                        hero job fetch 7f9c2ba4 table.csv -o - | head\n\n\
                        Without --output, a file that exists is not replaced.")]
pub(in crate::cli) struct FetchFile {
    /// The job
    pub(super) id: String,
    /// The name of the file; `-` is the standard input that it was given
    pub(super) name: String,
    /// The file to write; `-` writes standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

impl ListFiles {
    pub(super) async fn run(self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let document = api.of_job("job.files", &self.id, json!({})).await?;
        let ListedFiles { id, files, files_not_kept } = read("job.files", &document)?;
        let none = NoResults::new("file").by("of job", Some(&id));
        global.list(|| document, || table(&files), none)?;
        if let Some(why) = files_not_kept.filter(|_| !global.json) {
            output::note(&format!("hero: {why}"));
        }
        Ok(())
    }
}

fn table(files: &[JobFile]) -> TextTable<'_, JobFile> {
    let kind = |of: &JobFile| match of.kind {
        FileSide::Input => "input".to_owned(),
        FileSide::Output => "output".to_owned(),
        FileSide::Stdin => "stdin".to_owned(),
    };
    TextTable::of(files)
        .column("NAME", &|of| of.name.clone())
        .column(">BYTES", &|of| of.size.to_string())
        .column("KIND", &kind)
}

impl FetchFile {
    pub(super) async fn run(self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let job = api.of_job("job.get", &self.id, json!({})).await?;
        let id = job["id"].as_str().unwrap_or_default();
        let missing = || {
            let message = format!("job {id} has no file `{}`: hero job files {id}", self.name);
            Error::new(Exit::NotFound, message)
        };
        // A name that no file of a job has could lead out of the folder.
        if self.name != STDIN && self.name.parse::<FileName>().is_err() {
            return Err(missing());
        }
        let is_missing = |error: &Error| error.message.contains("has no file");
        let mut parts = api
            .file(id, &self.name)
            .await
            .map_err(|error| if is_missing(&error) { missing() } else { error })?;
        if self.output.as_deref() == Some(Path::new("-")) {
            while let Some(part) = parts.next().await? {
                output::unchanged(&part)?;
            }
            return Ok(());
        }
        let own = if self.name == STDIN { "stdin" } else { &self.name };
        let path = self.output.clone().unwrap_or_else(|| own.into());
        let size = write(&path, &mut parts, self.output.is_some()).await?;
        if global.json {
            output::json(&json!({ "id": id, "name": self.name, "size": size, "file": path }))?;
        }
        Ok(())
    }
}

/// Writes a content to a file. Returns its size. A new file is removed if that fails.
async fn write(path: &Path, parts: &mut JobFileParts, may_replace: bool) -> Result<u64, Error> {
    let unwritable = |error: &std::io::Error| {
        let why = reason(error);
        let message = format!("cannot write {}: {why}; --output names another", path.display());
        Error::new(Exit::Output, message)
    };
    let mut options = OpenOptions::new();
    options.write(true).create(may_replace).truncate(may_replace).create_new(!may_replace);
    let mut file = options.open(path).map_err(|error| unwritable(&error))?;
    let written = async {
        let mut size = 0;
        while let Some(part) = parts.next().await? {
            file.write_all(&part).map_err(|error| unwritable(&error))?;
            size += part.len() as u64;
        }
        Ok(size)
    };
    let written = written.await;
    if written.is_err() && !may_replace {
        // The error counts, not this one.
        let _ = std::fs::remove_file(path);
    }
    written
}
