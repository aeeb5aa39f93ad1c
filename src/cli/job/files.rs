//! `hero job files` and `hero job fetch`: the files of a job.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::artifacts::{ArtifactError, Contents};
use crate::cli::no_results::NoResults;
use crate::cli::table::TextTable;
use crate::cli::{Global, output};
use crate::client::{Client, ClientError, JobFile};
use crate::error::{Error, Exit, reason};
use crate::proto::job::{FILES_NOT_KEPT, FileBody, FileName, STDIN};
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
    pub(super) async fn run(self, client: &Client, global: &Global) -> Result<(), Error> {
        let id = client.job_id(&self.id).await?;
        let files = client.job_files(&id).await?;
        let not_kept = client.get_job(&id).await?.extra.remove(FILES_NOT_KEPT);
        let document = || {
            let mut document = json!({ "id": id, "files": files });
            if let Some(why) = &not_kept {
                document[FILES_NOT_KEPT] = json!(why);
            }
            document
        };
        print(&id, &files, document, global)?;
        if let Some(why) = not_kept.as_ref().filter(|_| !global.json) {
            output::note(&format!("hero: {why}"));
        }
        Ok(())
    }
}

/// Prints the files of a job.
pub(super) fn print(
    id: &impl Display,
    files: &[JobFile],
    document: impl FnOnce() -> Value,
    global: &Global,
) -> Result<(), Error> {
    let none = NoResults::new("file").by("of job", Some(id));
    global.list(document, || table(files), none)
}

fn table(files: &[JobFile]) -> TextTable {
    let kind = |of: &JobFile| match of.kind {
        FileSide::Input => "input".to_owned(),
        FileSide::Output => "output".to_owned(),
        FileSide::Stdin => "stdin".to_owned(),
    };
    TextTable::of(files)
        .column("NAME", &|of| of.name.clone())
        .column(">BYTES", &|of| of.size.to_string())
        .column("KIND", &kind)
        .table()
}

impl FetchFile {
    pub(super) async fn run(self, client: &Client, global: &Global) -> Result<(), Error> {
        let id = client.job_id(&self.id).await?;
        let missing = || {
            let message = format!("job {id} has no file `{}`: hero job files {id}", self.name);
            Error::new(Exit::NotFound, message)
        };
        let content = if self.name == STDIN {
            client.job_stdin(&id).await?
        } else {
            let name: FileName = self.name.parse().map_err(|_| missing())?;
            client.job_file(&id, &name).await?
        };
        let content = content.ok_or_else(missing)?;
        let contents = Contents::of(&global.config()?.job);
        if self.output.as_deref() == Some(Path::new("-")) {
            let mut out = std::io::stdout().lock();
            return match contents.give(&content, &mut out) {
                Ok(()) => Ok(()),
                Err(ArtifactError::Target(error)) => Err(output::lost(&error)),
                Err(error) => Err(ClientError::from(error).into()),
            };
        }
        let path = self.output.clone().unwrap_or_else(|| {
            let name = if self.name == STDIN { "stdin" } else { &self.name };
            name.into()
        });
        let size = write(&path, (&contents, &content), self.output.is_some())?;
        if global.json {
            output::json(&json!({ "id": id, "name": self.name, "size": size, "file": path }))?;
        }
        Ok(())
    }
}

/// Writes a content to a file. Returns its size. A new file is removed if that fails.
fn write(
    path: &Path,
    (contents, content): (&Contents, &FileBody),
    may_replace: bool,
) -> Result<u64, Error> {
    let unwritable = |error: &std::io::Error| {
        let why = reason(error);
        let message = format!("cannot write {}: {why}; --output names another", path.display());
        Error::new(Exit::Output, message)
    };
    let mut options = OpenOptions::new();
    options.write(true);
    if may_replace {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = options.open(path).map_err(|error| unwritable(&error))?;
    let given = contents.give(content, &mut file);
    if given.is_err() && !may_replace {
        // The error counts, not this one.
        let _ = std::fs::remove_file(path);
    }
    match given {
        Ok(()) => Ok(file.metadata().map_or(0, |data| data.len())),
        Err(ArtifactError::Target(error)) => Err(unwritable(&error)),
        Err(error) => Err(ClientError::from(error).into()),
    }
}
