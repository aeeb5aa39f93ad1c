//! `hero cron import`: turns crontabs into a file of periodic jobs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::input::read_bounded;
use super::time::local_zone;
use super::{Global, output};
use crate::error::{Error, Exit, reason};
use crate::proto::cron::{CronName, CrontabKind, ImportNote, imported};
use crate::proto::text::counted;

const CRONTAB_BYTES_MAX: u64 = 1 << 20;
/// The folders that systems have for the crontabs of users.
const SPOOLS: [&str; 2] = ["/var/spool/cron/crontabs", "/var/spool/cron"];

/// Turn crontabs into a file of periodic jobs, and report what differs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero cron import --check /etc/crontab /etc/cron.d/* ~ann\n  \
                        hero cron import /etc/crontab --output /etc/hero/cron.d/crontab.toml\n\n\
                        The report goes to standard error, the file to standard output without --output. Its jobs have \
                        the type bash. Remove the lines from the crontab before you reload the supervisor: else both \
                        run them.")]
pub(super) struct CronImport {
    /// Crontabs: /etc/crontab and files of /etc/cron.d have a column of users; ~USER is the crontab of a user
    #[arg(required = true, value_name = "FILE|~USER")]
    crontabs: Vec<String>,
    /// The lines of all files name a user, wherever the files are
    #[arg(long)]
    system: bool,
    /// The file to write, which must not exist
    #[arg(short, long, value_name = "FILE", conflicts_with = "check")]
    output: Option<PathBuf>,
    /// Report, and write nothing
    #[arg(long)]
    check: bool,
}

#[derive(Default)]
struct CrontabFiles {
    text: String,
    names: Vec<CronName>,
    notes: Vec<(String, ImportNote)>,
}

impl CronImport {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let files = global.config()?.crontab();
        let mut taken: BTreeSet<CronName> =
            files.entries.iter().map(|entry| entry.name.clone()).collect();
        let zone = local_zone().iana_name().unwrap_or("UTC").to_owned();
        let mut found = CrontabFiles::default();
        for name in &self.crontabs {
            let path = crontab_path(name);
            let text = read_bounded(&path, CRONTAB_BYTES_MAX)?;
            let read = imported(&text, self.kind(&path), &mut taken);
            for job in read.jobs {
                found.text.push_str(&job.table(name, &zone));
                found.text.push('\n');
                found.names.push(job.name);
            }
            found.notes.extend(read.notes.into_iter().map(|note| (name.clone(), note)));
        }
        let problems = files.rules.problems(Path::new("imported.toml"), &found.text);
        self.report(&found, &problems, global.json)?;
        if let Some(file) = &self.output {
            write_new(file, &found.text)?;
        }
        Ok(if problems.is_empty() { ExitCode::SUCCESS } else { Exit::Data.into() })
    }

    fn kind(&self, path: &Path) -> CrontabKind {
        let is_of_machine = path == Path::new("/etc/crontab") || path.starts_with("/etc/cron.d");
        if self.system || is_of_machine { CrontabKind::System } else { CrontabKind::User }
    }

    fn report(&self, found: &CrontabFiles, problems: &[String], json: bool) -> Result<(), Error> {
        if json {
            let note = |(file, note): &(String, ImportNote)| json!({ "file": file, "line": note.line, "text": note.text, "left_out": note.is_left_out });
            let notes: Vec<_> = found.notes.iter().map(note).collect();
            return output::json(&json!({
                "names": found.names, "toml": found.text, "notes": notes, "problems": problems,
            }));
        }
        for (file, note) in &found.notes {
            output::note(&format!("{file}:{}: {}", note.line, note.text));
        }
        output::notes(problems);
        let left_out = found.notes.iter().filter(|(_, note)| note.is_left_out).count();
        let jobs = counted(found.names.len() as u64, "periodic job", "periodic jobs");
        let lines = counted(left_out as u64, "line is left out", "lines are left out");
        if !found.names.is_empty() {
            output::note(
                "unlike in cron, each runs in a sandbox, without the network and with few folders, and for at most \
                 job.timeout: hero exec --explain shows what a command needs; open it in [type.bash.sandbox] of \
                 hero.toml, and give long ones a timeout, such as timeout = \"1h\"",
            );
        }
        output::note(&format!("{jobs}; {lines}"));
        if self.check || self.output.is_some() { Ok(()) } else { output::text(&found.text) }
    }
}

fn crontab_path(name: &str) -> PathBuf {
    match name.strip_prefix('~').filter(|user| !user.is_empty() && !user.contains('/')) {
        Some(user) => {
            let [first, second] = SPOOLS.map(|folder| Path::new(folder).join(user));
            if second.is_file() { second } else { first }
        }
        None => PathBuf::from(name),
    }
}

fn write_new(file: &Path, text: &str) -> Result<(), Error> {
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let message =
            format!("cannot write {}: {}; choose another --output", file.display(), reason(&error));
        Error::new(Exit::Output, message)
    })
}
