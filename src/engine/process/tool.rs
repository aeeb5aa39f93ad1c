//! Programs that run for a script before it runs itself: compilers, checks, installers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::Patience;
use super::child::{self, Ended, Origin, Report, Spec, Watch};
use super::environment::of_any_program;
use super::sandbox::Sandbox;
use super::{failure, reason};
use crate::engine::{Failure, Log};

/// The most that is kept of what a tool says.
const SAID_BYTES_MAX: u64 = 64 * 1024;
/// The most of it that an error holds.
const ERROR_BYTES_MAX: usize = 2 * 1024;

/// One run of a tool.
pub(super) struct Tool<'a> {
    /// Its program.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) args: Vec<OsString>,
    /// Its variables, beside those that any program needs.
    pub(super) env: Vec<(OsString, OsString)>,
    /// The folder it starts in, which is its home as well.
    pub(super) folder: &'a Path,
    /// What it is shut into, with its folder as its own.
    pub(super) sandbox: &'a Sandbox,
    /// How long it may take to end when asked.
    pub(super) kill_grace: Duration,
}

impl Tool<'_> {
    /// Runs it to its end. The inner result is what it said, if it failed.
    ///
    /// # Errors
    /// A stop, the deadline, or a program that cannot be started.
    pub(super) fn run(
        self,
        patience: Patience<'_>,
        log: Option<&dyn Log>,
    ) -> Result<Result<String, String>, Failure> {
        let mut env = of_any_program(self.folder);
        env.extend(self.env);
        let spec = Spec {
            program: self.program,
            args: self.args,
            env: env.into_iter().collect(),
            cwd: self.folder,
            home: self.folder,
            sandbox: self.sandbox,
            read: &[],
        };
        let watch = Watch {
            cancel: patience.cancel,
            deadline: patience.deadline,
            kill_grace: self.kill_grace,
            stdout_bytes_max: SAID_BYTES_MAX,
            stderr_bytes_max: SAID_BYTES_MAX,
            log,
            log_stdout: true,
            channel: false,
        };
        let report = child::run(&spec, &watch, Origin::Cold).map_err(|error| {
            failure(format!("cannot run {}: {}", spec.program.display(), reason(&error)))
        })?;
        match report.ended {
            Ended::Timeout => Err(Failure::Timeout),
            Ended::Stopped(reason) => Err(Failure::Stopped(reason)),
            Ended::Itself if report.status.success() => {
                Ok(Ok(String::from_utf8_lossy(&report.stdout).into_owned()))
            }
            Ended::Itself | Ended::TooMuchOutput | Ended::TooMuchOnDisk => {
                Ok(Err(said(&report, self.folder)))
            }
        }
    }
}

/// What a tool that failed had to say, of files by their names alone.
fn said(report: &Report, folder: &Path) -> String {
    let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let text = match (of(&report.stderr), of(&report.stdout)) {
        (stderr, stdout) if stderr.is_empty() => stdout,
        (stderr, _) => stderr,
    };
    let text = text.replace(&format!("{}/", folder.display()), "");
    if text.is_empty() {
        return super::status::describe(report.status);
    }
    match text.char_indices().nth(ERROR_BYTES_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}
