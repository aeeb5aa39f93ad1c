//! External programs: found in the job's `PATH`, started without a shell, ended with the job.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::context::{CallError, CallResult, SalJob};
use crate::engine::process::child::{self, ChildReport, Ended, Spec, Watch};
use crate::engine::process::{
    Environment, Explainer, environment, exceeded_message, explained, failed_message, find_in,
    output_text,
};
use crate::error::reason;

#[derive(Debug)]
pub(super) struct ExternalProgram {
    /// Its name in the job's `PATH`, or its file.
    name: &'static str,
    args: Vec<OsString>,
    /// Variables that the job's override.
    defaults: BTreeMap<String, String>,
    /// Variables that override the job's.
    env: Environment,
    folder: Option<PathBuf>,
    timeout: Option<Duration>,
    log: bool,
}

#[derive(Debug)]
pub(super) struct Exited(pub(super) ChildReport);

impl ExternalProgram {
    pub(super) fn new(name: &'static str) -> Self {
        let (args, defaults, env) = (Vec::new(), BTreeMap::new(), Environment::new());
        Self { name, args, defaults, env, folder: None, timeout: None, log: false }
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(args.into_iter().map(OsString::from));
        self
    }

    /// Sets a variable, unless the job has it.
    pub(super) fn default_env(mut self, name: &str, value: &str) -> Self {
        self.defaults.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn env(self, env: Environment) -> Self {
        Self { env, ..self }
    }

    /// Sets the folder where it starts; by default the script's folder.
    pub(super) fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    pub(super) fn timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    pub(super) fn logged(self, log: bool) -> Self {
        Self { log, ..self }
    }

    pub(super) fn output(self, job: SalJob<'_>) -> CallResult<String> {
        let name = self.name;
        let ran = self.run(job)?;
        if ran.success() {
            Ok(ran.stdout())
        } else {
            Err(format!("{name}: {}", ran.failure()).into())
        }
    }

    pub(super) fn run(self, job: SalJob<'_>) -> CallResult<Exited> {
        job.settings.check_run()?;
        let name = self.name;
        let program = find_in(name, OsStr::new(job.search_path()));
        let program = program.ok_or_else(|| format!("no {name} in PATH"))?;
        if self.args.iter().any(|arg| arg.as_encoded_bytes().contains(&0)) {
            return Err("an argument contains a NUL byte".into());
        }
        let mut env = environment(&self.defaults, job.run.script, job.own_folder()?)?;
        env.extend(self.env);
        let folder = self.folder.map_or_else(|| job.folder(), Ok)?;
        let own = self.timeout.and_then(|time| Instant::now().checked_add(time));
        let deadline = job.run.script.deadline;
        let deadline = own.map_or(deadline, |own| own.min(deadline));
        let (sandbox, home) = (&job.settings.sandbox, job.own_folder()?);
        let (args, cwd) = (self.args, folder.as_path());
        let spec = Spec { program, args, env, cwd, home, sandbox, stdin: None, read: &[] };
        let (limits, bytes_max) =
            ((deadline, job.settings.kill_grace), job.run.limits.string_size_max);
        let log = self.log.then_some(job.run.log);
        let watch = Watch::of_tool(job.run.cancel, limits, bytes_max, log);
        let report = child::run(&spec, &watch, None)
            .map_err(|error| format!("cannot run {name}: {}", reason(&error)))?;
        explain(job, &spec, &report);
        // A timeout can belong to the job or to the program.
        job.check_stop()?;
        match report.ended {
            Ended::Stopped(_) => Err(CallError::JobEnded),
            Ended::Exceeded(limit) => {
                Err(format!("{name}: {}", exceeded_message(limit, bytes_max)).into())
            }
            Ended::Itself | Ended::Timeout => Ok(Exited(report)),
        }
    }
}

/// Logs what the sandbox of the job refused a program.
fn explain(job: SalJob<'_>, spec: &Spec<'_>, report: &ChildReport) {
    let explanations = explained(spec, report, |allowance| Explainer {
        table: "sal".to_owned(),
        allowance,
        read: &job.settings.config.read,
        write: &job.settings.config.write,
        source: job.run.script.source,
        of_type: None,
    });
    for line in &explanations {
        job.run.log.remark(line);
    }
}

impl Exited {
    pub(super) fn success(&self) -> bool {
        self.0.ended == Ended::Itself && self.0.status.success()
    }

    pub(super) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    pub(super) fn stdout(&self) -> String {
        output_text(&self.0.written.stdout)
    }

    /// Returns why the program failed, with the end of its error output.
    pub(super) fn failure(&self) -> String {
        match &self.0 {
            ChildReport { ended: Ended::Timeout, .. } => "timeout".to_owned(),
            ChildReport { status, written, .. } => failed_message(*status, &written.stderr_tail),
        }
    }
}
