//! Runs the scripts of commands in child processes. The way of a script goes from left to right, and no
//! stage imports from one to its right:
//!
//! `prepare` (a script becomes a program with its files) → `start` (in its sandbox, cold or warm) →
//! `watch` (pipes, channel, deadline, limits) → `end` (ask, kill, reap, find orphans).

pub(crate) mod child;
mod end;
mod fed_program;
mod prepare;
mod proc;
mod run_tool;
mod service;
mod start;
mod tree;
mod watch;

pub(crate) use end::{
    Ending, Explainer, ask_to_end, exceeded_message, failed_message, output_text, with_path,
};
pub use fed_program::{FedProgram, feed_program};
pub(crate) use prepare::{Environment, check_variable, environment, remove_leftovers};
pub use prepare::{
    SYSTEM_PATH, Scratch, find_in, find_program, folder_of_jobs, folders_left, program_of,
    variable_names,
};
pub use service::{Service, ServiceSpec};
pub use start::ProcessRun;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Cancel, Engine, Failure, Log, Script, StopReason, Success};
use crate::config::{JobConfig, SandboxConfig, TypeConfig};
use crate::proto::job::{AskedBounds, JobOutput, OutputOverflow};
use crate::proto::target::ScriptType;
use crate::sandbox::{Allowance, Limit, Sandbox, lacks_groups};
use child::{ChildReport, Ended, Spec, Watch};
use end::{
    Collected, ModuleFolders, above_the_job, collect, error_of, job_output, log_output,
    missing_for_processes, missing_of_own_folder,
};
use prepare::{Prepared, Preparer, Until};
use run_tool::run_tool;
use start::{Warm, Warmed};

/// Runs scripts with a configured command, each in a process group and a folder of its own.
#[derive(Debug)]
pub struct CommandEngine {
    script_type: ScriptType,
    job: JobConfig,
    preparer: Preparer,
    /// The warm interpreter, for Python with `warm = true`.
    warm: Option<Arc<Warm>>,
}

impl CommandEngine {
    pub fn new(script_type: ScriptType, config: &TypeConfig, job: &JobConfig) -> Self {
        let preparer = Preparer::new(config, job, run_tool);
        let python = preparer.program().ok().filter(|_| preparer.is_python());
        let warm = python.and_then(|python| Warm::new(&python, config, &preparer.sandbox));
        Self { script_type, job: job.clone(), preparer, warm }
    }

    /// Checks a script, with the extension of its file as in [`Script`], without running it. Returns the error in it, if there is one.
    /// Fails if the check cannot be made on this machine.
    pub fn check(&self, source: &str, extension: &str) -> Result<Option<String>, Failure> {
        self.preparer.check(source, extension)
    }

    /// Returns the sandbox of a job that asks for bounds; `None` for the type's.
    fn own_sandbox(&self, script: &Script<'_>) -> Result<Option<Sandbox>, Failure> {
        if script.bounds.first_field().is_none() {
            return Ok(None);
        }
        let config = self.preparer.config.sandbox.for_job(&self.script_type, script.bounds);
        let config = config.map_err(|error| Failure::Invalid { message: error.to_string() })?;
        Ok(Some(Sandbox::of_type(&config)))
    }

    /// Returns the paths that a script may read in addition to its sandbox's.
    fn reads(&self, prepared: &Prepared) -> Vec<PathBuf> {
        let entries = prepared.entries.iter().map(|entry| entry.path.clone());
        let cwd = self.preparer.cwd().map(Path::to_owned);
        entries.chain(cwd).chain(prepared.compiler.clone()).collect()
    }

    /// Returns the failure of a child that was not started: of the machine if what the type needs is gone.
    fn not_started(&self, spec: &Spec<'_>, error: &io::Error) -> Failure {
        let what = format!("cannot run {}", spec.program.display());
        let cwd = || self.preparer.cwd().filter(|cwd| !cwd.is_dir());
        let no_cwd = || Some(format!("there is no folder {} (cwd)", cwd()?.display()));
        let lacks = error.raw_os_error().and_then(|_| self.unavailable().or_else(no_cwd));
        match lacks {
            Some(why) => Failure::Machine { message: format!("{what}: {why}") },
            None => Failure::before_start(what, error),
        }
    }

    fn outcome(
        &self,
        mut report: ChildReport,
        script: &Path,
        log: &dyn Log,
    ) -> Result<Success, Failure> {
        if report.ended == Ended::Itself
            && let Some(asked) = report.written.asked
        {
            log_output(&report.written.stdout, log);
            return Err(asked.with_exit_code(report.status.code()));
        }
        if report.ended == Ended::Itself && report.status.success() {
            let output = match report.written.reported.take() {
                Some(text) => text.into(),
                None => self.output(report, log),
            };
            return Ok(Success { output, exit_code: Some(0) });
        }
        if report.ended != Ended::Exceeded(Limit::Output) {
            log_output(&report.written.stdout, log);
        }
        Err(match report.ended {
            Ended::Timeout => Failure::Timeout,
            Ended::Stopped(reason) => Failure::Stopped(reason),
            Ended::Exceeded(limit) => {
                Failure::script(exceeded_message(limit, self.job.output_size_max))
            }
            Ended::Itself => self.failed(&report, script),
        })
    }

    fn explanations(
        &self,
        spec: &Spec<'_>,
        report: &ChildReport,
        script: &Script<'_>,
        home: &Path,
    ) -> Vec<String> {
        let config = &self.preparer.config.sandbox;
        let explainer = |allowance| {
            explainer(&self.script_type, config, allowance, (script.source, script.bounds))
        };
        let refused = explained(spec, report, explainer);
        let has_failed = report.ended == Ended::Itself && !report.status.success();
        if !has_failed || !refused.is_empty() {
            return refused;
        }
        let has_other_folder = self.preparer.cwd().is_some();
        let stderr = &report.written.stderr_tail;
        let missing = missing_of_own_folder(stderr, home, has_other_folder);
        let module = || {
            let (env, script_type, read) = (&spec.env, &self.script_type, &config.read);
            let folders = ModuleFolders { env, script_type, read };
            if self.preparer.is_python() {
                folders.missing_module(stderr, script.source)
            } else {
                folders.missing_package(stderr)
            }
        };
        let of_silence = || explainer(spec.allowance()?).of_silence(report.status.code(), stderr);
        missing.or_else(module).or_else(of_silence).into_iter().collect()
    }

    /// Stores the files that a script left. Fails for a job that wants its output in full, if some files exceed a bound.
    fn keep_files(&self, home: &Path, script: &Script<'_>, log: &dyn Log) -> Result<(), Failure> {
        let (room, contents) = (self.job.files_size_max, &self.preparer.contents);
        let Collected { files, not_kept, lacks_some } = collect(home, room, contents, log);
        log.files(files, &not_kept);
        if lacks_some && self.overflow(script) == OutputOverflow::Fail {
            return Err(Failure::script(format!("output too large: {not_kept}")));
        }
        Ok(())
    }

    fn overflow(&self, script: &Script<'_>) -> OutputOverflow {
        script
            .output_overflow
            .or(self.preparer.config.output_overflow)
            .unwrap_or(self.job.output_overflow)
    }

    /// Returns standard output as the output of the job, after a mark if its start is missing.
    fn output(&self, report: ChildReport, log: &dyn Log) -> JobOutput {
        if report.written.stdout_missing == 0 {
            return job_output(report.written.stdout);
        }
        let bytes_max = self.job.output_size_max;
        let (output, cut) =
            JobOutput::truncated(&report.written.stdout, report.written.stdout_missing, bytes_max);
        log.output_truncated(cut);
        match output {
            JobOutput::Text(text) => job_output(text.into_bytes()),
            bytes @ JobOutput::Bytes(_) => bytes,
        }
    }

    fn failed(&self, report: &ChildReport, script: &Path) -> Failure {
        let (tail, exit_code) = (&report.written.stderr_tail, report.status.code());
        let failure = |message: String| Failure::Script { message, exit_code };
        if report.usage.limit == Some(Limit::JobMemory) {
            return failure(exceeded_message(Limit::JobMemory, self.job.output_size_max));
        }
        if let Some(above) = report.usage.limit.and_then(above_the_job) {
            let message = format!("out of memory: the kernel killed the job as {above}");
            return Failure::Killed { message, exit_code };
        }
        if let Some((what, setting)) = missing_for_processes(tail) {
            let of_type = &self.script_type;
            return failure(format!(
                "multiprocessing needs {what} here, which the sandbox closes: set \
                 type.{of_type}.sandbox.{setting}"
            ));
        }
        let has_raised = self.preparer.is_python() && exit_code == Some(1);
        let error = has_raised.then(|| error_of(tail, script)).flatten();
        let message = error.unwrap_or_else(|| failed_message(report.status, tail));
        failure(message)
    }
}

fn explainer<'a>(
    script_type: &ScriptType,
    config: &'a SandboxConfig,
    allowance: Allowance,
    (source, asked): (&'a str, &'a AskedBounds),
) -> Explainer<'a> {
    Explainer {
        table: format!("type.{script_type}.sandbox"),
        allowance,
        read: &config.read,
        write: &config.write,
        source,
        of_type: Some((config, asked)),
    }
}

/// Returns what the sandbox of a script type refused a script, by the lines that it wrote to standard error, also
/// if it went on. The files in the folders of jobs are not there any more, so lines about them are left out.
pub fn refusals_in(
    (script_type, config): (&ScriptType, &SandboxConfig),
    (source, asked): (&str, &AskedBounds),
    lines: &[&str],
) -> Vec<String> {
    let Ok(own) = config.for_job(script_type, asked) else { return Vec::new() };
    let sandbox = Sandbox::of_type(&own);
    let Some(allowance) = sandbox.allowance(Path::new("/bin/sh"), Path::new("/nonexistent"), &[])
    else {
        return Vec::new();
    };
    let lines: Vec<&str> =
        lines.iter().copied().filter(|line| !line.contains(prepare::FOLDERS_OF_JOBS)).collect();
    explainer(script_type, config, allowance, (source, asked)).of_whole_text(&lines.join("\n"))
}

pub(crate) fn explained<'a>(
    spec: &Spec<'_>,
    report: &ChildReport,
    explainer: impl FnOnce(Allowance) -> Explainer<'a>,
) -> Vec<String> {
    let has_failed = match report.ended {
        Ended::Itself => !report.status.success(),
        Ended::Stopped(_) => false,
        _ => true,
    };
    let allowance = Some(spec).filter(|_| has_failed).and_then(Spec::allowance);
    let Some(allowance) = allowance else { return Vec::new() };
    let explainer = explainer(allowance);
    let ChildReport { ended, status, usage, .. } = report;
    let end = explainer.of_end(Ending { ended: *ended, status: *status, limit: usage.limit });
    // A limit that ended it is the one cause.
    end.map_or_else(|| explainer.of_text(&report.written.stderr_tail), |end| vec![end])
}

impl Engine for CommandEngine {
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure> {
        let own_sandbox = self.own_sandbox(script)?;
        if script.bounds.job_memory.is_some()
            && let Some(reason) = lacks_groups()
        {
            log.remark(&format!(
                "note: nothing holds this job to its --job-memory, since jobs have no control groups here: \
                 {reason}; --memory bounds each process"
            ));
        }
        let until = Until { cancel, deadline: script.deadline };
        let prepared = self.preparer.prepare(script, until, log)?;
        let (read, home) = (self.reads(&prepared), prepared.scratch.path());
        let spec = Spec {
            program: prepared.program.clone(),
            args: prepared.args.clone(),
            env: prepared.env.clone(),
            cwd: self.preparer.cwd().unwrap_or(&prepared.home),
            home,
            sandbox: own_sandbox.as_ref().unwrap_or(&self.preparer.sandbox),
            stdin: prepared.stdin.as_ref(),
            read: &read,
        };
        // A warm interpreter has the limits of its type.
        let warm = self.warm.as_ref().filter(|_| own_sandbox.is_none());
        let warmed = warm.map(|warm| Warmed { warm, prepared: &prepared });
        let limits = (script.deadline, self.job.kill_grace);
        let watch = Watch {
            keeps_stdout_end: self.overflow(script) == OutputOverflow::Truncate,
            is_of_job: true,
            ..Watch::of_tool(cancel, limits, self.job.output_size_max, Some(log))
        };
        let report =
            child::run(&spec, &watch, warmed).map_err(|error| self.not_started(&spec, &error))?;
        log.used(&report.usage);
        // A job that goes back to its queue makes them again.
        let goes_back =
            matches!(report.ended, Ended::Stopped(reason) if reason != StopReason::Requested);
        let lacks = if goes_back { Ok(()) } else { self.keep_files(home, script, log) };
        let explanations = self.explanations(&spec, &report, script, &prepared.home);
        let outcome = self.outcome(report, &prepared.script, log);
        for line in &explanations {
            log.remark(line);
        }
        let success = outcome?;
        lacks.map(|()| success)
    }

    fn warm_up(&self) {
        remove_leftovers();
        if let Some(warm) = &self.warm {
            warm.warm_up();
        }
    }

    fn unavailable(&self) -> Option<String> {
        self.preparer.program().err().or_else(|| self.preparer.sandbox.refusal())
    }

    fn runs_processes(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Vec<String> {
        let command = self.preparer.config.command.first();
        let program = command.map(Path::new).and_then(Path::file_name);
        let program = program.map(|name| name.to_string_lossy().into_owned());
        std::iter::once("command".to_owned()).chain(program).collect()
    }

    fn script_type(&self) -> &ScriptType {
        &self.script_type
    }
}

#[cfg(test)]
mod tests;
