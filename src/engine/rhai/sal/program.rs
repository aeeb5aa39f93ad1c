//! The programs that functions call: found as the script's own commands are, started without a
//! shell, ended with the job.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::job::{Failed, Job, Outcome};
use crate::engine::process::child::{self, Ended, Origin, Report, Spec, Watch};
use crate::engine::process::{environment, failed_message, find_in, output_text, reason};

/// A program, its arguments, and how it runs.
#[derive(Debug)]
pub(super) struct Program {
    name: &'static str,
    args: Vec<OsString>,
    env: Vec<(&'static str, &'static str)>,
    folder: Option<PathBuf>,
    timeout: Option<Duration>,
    log: bool,
}

/// A program that has ended by itself, or at its own timeout.
#[derive(Debug)]
pub(super) struct Ran {
    report: Report,
}

impl Program {
    pub(super) fn new(name: &'static str) -> Self {
        let (args, env) = (Vec::new(), Vec::new());
        Self { name, args, env, folder: None, timeout: None, log: false }
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(args.into_iter().map(OsString::from));
        self
    }

    pub(super) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Where it starts; else in the script's folder.
    pub(super) fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// When it is ended, if the job is not sooner.
    pub(super) fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// What it says goes to the job's log as well.
    pub(super) fn logged(mut self) -> Self {
        self.log = true;
        self
    }

    /// Runs it and gives its standard output; it fails as the program does.
    pub(super) fn output(self, job: Job<'_>) -> Outcome<String> {
        let name = self.name;
        let ran = self.run(job)?;
        if ran.success() { Ok(ran.stdout()) } else { Err(ran.failure(name)) }
    }

    /// Runs it to its end.
    pub(super) fn run(self, job: Job<'_>) -> Outcome<Ran> {
        job.settings.check_run()?;
        let name = self.name;
        let program = find_in(name, OsStr::new(job.search_path()));
        let program = program.ok_or_else(|| format!("no {name} in PATH"))?;
        if self.args.iter().any(|arg| arg.as_encoded_bytes().contains(&0)) {
            return Err("an argument holds a NUL".into());
        }
        let mut env = environment(job.running.script, job.own_folder()?)?;
        for (name, value) in self.env {
            // What the job itself says has been thought of.
            if !env.iter().any(|(known, _)| known == OsStr::new(name)) {
                env.push((name.into(), value.into()));
            }
        }
        let folder = match self.folder {
            Some(folder) => folder,
            None => job.folder()?,
        };
        let own = self.timeout.and_then(|time| Instant::now().checked_add(time));
        let deadline = job.running.script.deadline;
        let bytes_max = job.settings.bytes_max;
        let (home, sandbox) = (job.own_folder()?, &job.settings.sandbox);
        let spec = Spec { program, args: self.args, env, cwd: &folder, home, sandbox, read: &[] };
        let watch = Watch {
            cancel: job.running.cancel,
            deadline: own.map_or(deadline, |own| own.min(deadline)),
            kill_grace: job.settings.kill_grace,
            stdout_bytes_max: bytes_max,
            stderr_bytes_max: bytes_max,
            log: self.log.then_some(job.running.log),
            log_stdout: true,
            channel: false,
        };
        let report = child::run(&spec, &watch, Origin::Cold)
            .map_err(|error| format!("cannot run {name}: {}", reason(&error)))?;
        job.look()?;
        match report.ended {
            Ended::Stopped(_) => Err(Failed::Ended),
            Ended::TooMuchOutput => {
                Err(format!("{name} wrote too much: more than {bytes_max} bytes").into())
            }
            Ended::TooMuchOnDisk => Err(format!("{name}: disk full").into()),
            Ended::Itself | Ended::Timeout => Ok(Ran { report }),
        }
    }
}

impl Ran {
    pub(super) fn success(&self) -> bool {
        self.report.ended == Ended::Itself && self.report.status.success()
    }

    /// The exit code; none if a signal ended it.
    pub(super) fn code(&self) -> Option<i32> {
        self.report.status.code()
    }

    pub(super) fn stdout(&self) -> String {
        output_text(&self.report.stdout)
    }

    /// How it failed, and the last it had to say.
    pub(super) fn failure(&self, name: &str) -> Failed {
        if self.report.ended == Ended::Timeout {
            return Failed::Why(format!("{name}: timeout"));
        }
        Failed::Why(format!(
            "{name}: {}",
            failed_message(self.report.status, &self.report.stderr_tail)
        ))
    }
}
