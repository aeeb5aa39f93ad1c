//! `hero backup` and `hero restore`: copies a namespace to a file, and back into an empty one.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::author::open_client;
use super::input::{bad, parsed};
use super::{Global, output};
use crate::client::{BackupError, BackupReader, BackupWriter, restore};
use crate::error::{Error, Exit, reason};
use crate::proto::text::counted;

/// Copy all jobs, schedules, logs and objects to a file, while they are in use
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero backup /var/backups/hero.jsonl\n\n\
                        Only its owner can read the file, which replaces one of that name. It has \
                        the state of the periodic jobs in supervisor.cron_dir of this machine. \
                        It has no files of jobs and no tokens: a restored job that needs an input file ends in error and says so; \
                        nor secrets, configuration, files of periodic jobs and scripts, or the counters of hero stats, \
                        which begin at 0. \
                        See docs/operations.md.")]
pub(super) struct Backup {
    /// The file
    file: PathBuf,
}

/// Restore a backup into a namespace that has no jobs and no objects
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero restore /var/backups/hero.jsonl\n  \
                        hero restore --into check hero.jsonl\n\n\
                        The whole file is checked before anything is written. Jobs that ran at the \
                        time of the backup run again, with no attempt charged.")]
pub(super) struct Restore {
    /// The file that `hero backup` wrote
    file: PathBuf,
    /// The namespace; by default redis.namespace
    #[arg(long, value_name = "NAMESPACE")]
    into: Option<String>,
}

impl Backup {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let client = global.client()?;
        let failed = |error| failed("write", &self.file, error);
        if self.file == Path::new("-") {
            let message =
                "a backup is a file that is replaced as a whole, not standard output: name one";
            return Err(Error::new(Exit::Usage, message));
        }
        if self.file.is_dir() {
            let error = std::io::Error::other("it is a folder; name a file in it");
            return Err(failed(error.into()));
        }
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Its mode is 0600. A backup that is cut off never has the name of a complete one.
        let file = tempfile::Builder::new()
            .prefix(".hero-backup-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| failed(error.into()))?;
        let names: Vec<_> = config.crontab().entries.into_iter().map(|entry| entry.name).collect();
        let mut writer = BackupWriter::new(BufWriter::new(file));
        client.backup(&names, &mut writer).await.map_err(failed)?;
        let (jobs, objects) = writer.counts();
        let without_files = writer.jobs_without_files();
        let file =
            writer.into_inner().into_inner().map_err(|error| failed(error.into_error().into()))?;
        file.as_file().sync_all().map_err(|error| failed(error.into()))?;
        let bytes = file.as_file().metadata().map_err(|error| failed(error.into()))?.len();
        file.persist(&self.file).map_err(|error| failed(error.error.into()))?;
        global.print(
            || {
                json!({
                    "jobs": jobs, "objects": objects, "bytes": bytes, "jobs_without_files": without_files,
                })
            },
            || {
                let file = self.file.display();
                format!("{} are in {file} ({bytes} bytes)\n", jobs_and_objects(jobs, objects))
            },
        )?;
        if without_files > 0 {
            let one = "job that has not ended has input files, which are not in it: restored, it ends in error";
            let more = "jobs that have not ended have input files, which are not in it: restored, they end in error";
            output::note(&format!("hero: {}", counted(without_files, one, more)));
        }
        Ok(())
    }
}

impl Restore {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let mut config = global.config()?.clone();
        if let Some(namespace) = &self.into {
            config.redis.namespace = parsed(namespace)?;
        }
        let client = open_client(&config)?;
        let failed = |error| failed("restore", &self.file, error);
        let mut file = File::open(&self.file).map_err(|error| {
            let exit = match error.kind() {
                std::io::ErrorKind::NotFound => Exit::NotFound,
                _ => Exit::NotPermitted,
            };
            Error::new(exit, format!("cannot read {}: {}", self.file.display(), reason(&error)))
        })?;
        // All of it is checked before anything is written.
        let mut reader = BackupReader::new(BufReader::new(&file));
        reader.head().map_err(failed)?;
        while reader.next_line().map_err(failed)?.is_some() {}
        file.rewind().map_err(|error| failed(error.into()))?;
        let mut reader = BackupReader::new(BufReader::new(&file));
        let restored = restore(&client, &mut reader).await.map_err(failed)?;
        global.print(
            || {
                json!({
                    "jobs": restored.jobs, "run_again": restored.again,
                    "stay_created": restored.stay, "objects": restored.objects,
                })
            },
            || {
                let all = jobs_and_objects(restored.jobs, restored.objects);
                let mut lines = vec![format!("{all} are restored\n")];
                if restored.again > 0 {
                    let again =
                        counted(restored.again, "job ran then and runs", "jobs ran then and run");
                    lines.push(format!("{again} again\n"));
                }
                if restored.stay > 0 {
                    let one = "job stays created: its fields name no queue\n";
                    let more = "jobs stay created: their fields name no queue\n";
                    lines.push(counted(restored.stay, one, more));
                }
                lines.concat()
            },
        )
    }
}

fn jobs_and_objects(jobs: u64, objects: u64) -> String {
    let jobs = counted(jobs, "job", "jobs");
    format!("{jobs} and {}", counted(objects, "object", "objects"))
}

fn failed(doing: &str, file: &Path, error: BackupError) -> Error {
    let file = file.display();
    match error {
        BackupError::Client(error) => Error::from(error),
        BackupError::File(error) => {
            let exit = if doing == "write" { Exit::Output } else { Exit::NotPermitted };
            Error::new(exit, format!("cannot {doing} {file}: {}", reason(&error)))
        }
        BackupError::Rejected(why) => bad(format!("cannot {doing} {file}: {why}")),
    }
}
