//! External programs: found in the job's `PATH`, started without a shell, ended with the job.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::{CallError, CallResult, SalJob};
use crate::engine::Log;
use crate::engine::process::child::{self, ChildReport, Ended, Spec, Watch};
use crate::engine::process::{Explainer, explained};
use crate::engine::process::{environment, failed_message, find_in, output_text};
use crate::error::reason;

pub(super) type Environment = Vec<(OsString, OsString)>;

#[derive(Debug)]
pub(super) struct ExternalProgram {
    name: &'static str,
    args: Vec<OsString>,
    env: Vec<(&'static str, &'static str)>,
    folder: Option<PathBuf>,
    timeout: Option<Duration>,
    log: bool,
}

#[derive(Debug)]
pub(super) struct Exited {
    report: ChildReport,
}

impl ExternalProgram {
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

    /// Sets the folder where it starts; by default the script's folder.
    pub(super) fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    pub(super) fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    pub(super) fn logged(mut self) -> Self {
        self.log = true;
        self
    }

    pub(super) fn output(self, job: SalJob<'_>) -> CallResult<String> {
        let name = self.name;
        let ran = self.run(job)?;
        if ran.success() { Ok(ran.stdout()) } else { Err(ran.failure(name).into()) }
    }

    pub(super) fn run(self, job: SalJob<'_>) -> CallResult<Exited> {
        job.settings.check_run()?;
        let name = self.name;
        let program = find_in(name, OsStr::new(job.search_path()));
        let program = program.ok_or_else(|| format!("no {name} in PATH"))?;
        if self.args.iter().any(|arg| arg.as_encoded_bytes().contains(&0)) {
            return Err("an argument contains a NUL byte".into());
        }
        let mut env = environment(job.run.script, job.own_folder()?)?;
        for (name, value) in self.env {
            // A variable of the job itself takes precedence.
            if !env.iter().any(|(known, _)| known == OsStr::new(name)) {
                env.push((name.into(), value.into()));
            }
        }
        let folder = match self.folder {
            Some(folder) => folder,
            None => job.folder()?,
        };
        let log = self.log.then_some(job.run.log);
        let report = run_in_sandbox(job, (program, self.args), env, &folder, self.timeout, log)
            .map_err(|error| format!("cannot run {name}: {}", reason(&error)))?;
        job.check_stop()?;
        match report.ended {
            Ended::Stopped(_) => Err(CallError::JobEnded),
            Ended::TooMuchOutput => {
                let bytes_max = job.run.limits.string_size_max;
                Err(format!("the output of {name} is larger than {bytes_max} bytes").into())
            }
            Ended::TooMuchOnDisk => Err(format!("{name}: disk full").into()),
            Ended::TooMuchMemory => Err(format!("{name}: out of memory").into()),
            Ended::TooManyProcesses => Err(format!("{name}: too many processes").into()),
            Ended::Itself | Ended::Timeout => Ok(Exited { report }),
        }
    }
}

impl Exited {
    pub(super) fn success(&self) -> bool {
        self.report.ended == Ended::Itself && self.report.status.success()
    }

    pub(super) fn code(&self) -> Option<i32> {
        self.report.status.code()
    }

    pub(super) fn stdout(&self) -> String {
        output_text(&self.report.written.stdout)
    }

    /// Returns the error of a failed program, with the end of its error output.
    pub(super) fn failure(&self, name: &str) -> String {
        if self.report.ended == Ended::Timeout {
            return format!("{name}: timeout");
        }
        let ChildReport { status, written, .. } = &self.report;
        format!("{name}: {}", failed_message(*status, &written.stderr_tail))
    }
}

/// Runs a process in the sandbox of the job until it exits, the job ends or `timeout` has passed.
pub(super) fn run_in_sandbox(
    job: SalJob<'_>,
    (program, args): (PathBuf, Vec<OsString>),
    env: Environment,
    folder: &Path,
    timeout: Option<Duration>,
    log: Option<&dyn Log>,
) -> io::Result<ChildReport> {
    let settings = job.settings;
    let (home, sandbox) = (job.run.scratch()?, &settings.sandbox);
    let spec = Spec { program, args, env, cwd: folder, home, sandbox, stdin: None, read: &[] };
    let own = timeout.and_then(|time| Instant::now().checked_add(time));
    let deadline = job.run.script.deadline;
    let deadline = own.map_or(deadline, |own| own.min(deadline));
    let limits = (deadline, settings.kill_grace);
    let watch = Watch::of_tool(job.run.cancel, limits, job.run.limits.string_size_max, log);
    let report = child::run(&spec, &watch, None)?;
    let explanations = explained(&spec, &report, |allowance| Explainer {
        table: "sal".to_owned(),
        allowance,
        read: &settings.config.read,
        write: &settings.config.write,
        source: job.run.script.source,
        of_type: None,
    });
    for line in &explanations {
        job.run.log.remark(line);
    }
    Ok(report)
}
