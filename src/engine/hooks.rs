//! The hooks of a script type: its scripts that run before and after each attempt of a job, around any engine.

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use serde_json::json;
use tracing::warn;

use super::{
    Cancel, Engine, Failure, InputFiles, Log, Script, ScriptRequest, StopReason, Stream, Success,
};
use crate::config::{EngineKind, JobConfig, TypeConfig};
use crate::error::reason;
use crate::proto::job::AskedBounds;
use crate::proto::target::ScriptType;
use crate::proto::units::format_duration;

/// The variable of `after` with the outcome of the attempt.
const OUTCOME: &str = "HERO_OUTCOME";
/// The variables that Hero gives the jobs of periodic jobs. Of any other name, such as `HERO_CONFIG`, the submitter chooses the value.
const OF_FIRINGS: [&str; 2] = ["HERO_CRON", "HERO_CRON_DUE"];
/// The largest part of an error in it: the system bounds a variable.
const ERROR_BYTES_MAX: usize = 16 << 10;
/// The time of `after` in a unit that stops: little of its drain is left.
const AT_SHUTDOWN: Duration = Duration::from_secs(2);

pub(super) struct HookedEngine {
    engine: Arc<dyn Engine>,
    before: Option<Hook>,
    after: Option<Hook>,
    timeout: Duration,
    reads: JobDataFor,
}

/// The part of the data of its job that a hook gets. A variable of the job can replace the program of a hook, as `BASH_ENV`, or keep it
/// from its work, as `SHELLOPTS`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobDataFor {
    /// An interpreter that starts no program: the variables are values.
    Interpreter,
    /// An interpreter that may start programs: the variables of a firing alone.
    InterpreterOfPrograms,
    /// A program: the same, and all of them as JSON on its standard input.
    Program,
}

struct Hook {
    key: &'static str,
    file: PathBuf,
    extension: String,
    /// Its text, or why it cannot be read.
    text: Result<String, String>,
}

pub(super) fn around(
    engine: Arc<dyn Engine>,
    config: &TypeConfig,
    job: &JobConfig,
) -> Arc<dyn Engine> {
    let hook = |key, file: &Path| {
        let is_set = !file.as_os_str().is_empty();
        is_set.then(|| Hook {
            key,
            file: file.to_owned(),
            extension: config.further_extension(file),
            text: read(file, job.script_size_max),
        })
    };
    let (before, after) = (hook("before", &config.before), hook("after", &config.after));
    if before.is_none() && after.is_none() {
        return engine;
    }
    let reads = match config.engine {
        EngineKind::Command => JobDataFor::Program,
        EngineKind::Sal => JobDataFor::InterpreterOfPrograms,
        EngineKind::Osis | EngineKind::HeroScript => JobDataFor::Interpreter,
    };
    Arc::new(HookedEngine { engine, before, after, timeout: config.hook_timeout, reads })
}

fn read(file: &Path, bytes_max: u64) -> Result<String, String> {
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| reason(&error))?;
    let mut bounded = opened.take(bytes_max + 1);
    bounded.read_to_string(&mut text).map_err(|error| reason(&error))?;
    if text.len() as u64 > bytes_max {
        return Err(format!("it is larger than job.script_size_max ({bytes_max} bytes)"));
    }
    Ok(text)
}

impl JobDataFor {
    fn variables(self, job: &Script<'_>) -> BTreeMap<String, String> {
        let mut env = job.env.clone();
        if self != Self::Interpreter {
            env.retain(|name, _| OF_FIRINGS.contains(&name.as_str()));
        }
        env
    }

    fn files(self, job: &Script<'_>) -> Option<InputFiles> {
        let stdin = json!({ "env_vars": job.env, "args": job.args }).to_string().into_bytes();
        let files = InputFiles { stdin: Some(stdin.into()), ..InputFiles::default() };
        (self == Self::Program).then_some(files)
    }
}

impl Hook {
    fn unavailable(&self) -> Option<String> {
        let why = self.text.as_ref().err()?;
        let (key, file) = (self.key, self.file.display());
        Some(format!("cannot read the script {file} of its hook `{key}`: {why}"))
    }

    /// Returns it as a script of the job with another environment, standard input and deadline, without the job's bounds.
    fn script<'a>(
        &'a self,
        job: &Script<'a>,
        (env, files): (&'a BTreeMap<String, String>, Option<&'a InputFiles>),
        deadline: Instant,
    ) -> Result<Script<'a>, Failure> {
        static BOUNDS: LazyLock<AskedBounds> = LazyLock::new(AskedBounds::default);
        let text = self.text.as_deref();
        let source = text.map_err(|_| Failure::script(self.unavailable().unwrap_or_default()))?;
        let (extension, bounds) = (&self.extension, &*BOUNDS);
        Ok(Script { source, extension, env, bounds, files, deadline, ..*job })
    }

    /// Says in a sentence how it failed, with the time that it had.
    fn told(&self, failure: &Failure, timeout: Duration) -> String {
        let (key, file) = (self.key, self.file.display());
        match failure {
            Failure::Timeout => {
                let time = format_duration(timeout);
                format!("the hook `{key}` ({file}) timed out: it may take {time}")
            }
            failure => format!("the hook `{key}` ({file}) failed: {failure}"),
        }
    }
}

impl HookedEngine {
    fn run_before(
        &self,
        script: &Script<'_>,
        cancel: &Cancel,
        log: &dyn Log,
    ) -> Result<(), Failure> {
        let Some(hook) = &self.before else { return Ok(()) };
        let deadline = script.deadline.min(Instant::now() + self.timeout);
        let (env, files) = (self.reads.variables(script), self.reads.files(script));
        let own = hook.script(script, (&env, files.as_ref()), deadline)?;
        let Err(failure) = self.engine.run(&own, cancel, &HookLog { key: hook.key, log }) else {
            return Ok(());
        };
        let message = hook.told(&failure, self.timeout);
        Err(match failure {
            Failure::Timeout if deadline == script.deadline => Failure::Timeout,
            Failure::Machine { .. } => Failure::Machine { message },
            Failure::Killed { exit_code, .. } => Failure::Killed { message, exit_code },
            Failure::Invalid { .. } => Failure::Invalid { message },
            Failure::Stopped(reason) => Failure::Stopped(reason),
            // A hook has no event to wait for.
            failure => Failure::Script { message, exit_code: failure.exit_code() },
        })
    }

    /// Runs the hook after the job, which no stop of the job reaches.
    fn run_after(&self, script: &Script<'_>, result: &Result<Success, Failure>, log: &dyn Log) {
        let Some(hook) = &self.after else { return };
        let timeout = match result {
            Err(Failure::Stopped(StopReason::Shutdown)) => self.timeout.min(AT_SHUTDOWN),
            _ => self.timeout,
        };
        let (mut env, files) = (self.reads.variables(script), self.reads.files(script));
        env.insert(OUTCOME.to_owned(), outcome(result));
        let own = hook.script(script, (&env, files.as_ref()), Instant::now() + timeout);
        let ran = own
            .and_then(|own| self.engine.run(&own, &Cancel::new(), &HookLog { key: hook.key, log }));
        if let Err(failure) = ran {
            let message = hook.told(&failure, timeout);
            log.remark(&format!("{message}; the end of the job is the same"));
            let id = script.job_id;
            warn!(job_id = %id, "job {id}: {}", message.escape_debug());
        }
    }
}

fn outcome(result: &Result<Success, Failure>) -> String {
    let (status, error, exit_code) = match result {
        Ok(success) => ("finished", None, success.exit_code),
        Err(failure @ Failure::Waits { exit_code, .. }) => {
            ("waits", Some(failure.to_string()), *exit_code)
        }
        Err(failure) => {
            let mut error = failure.to_string();
            error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
            ("error", Some(error), failure.exit_code())
        }
    };
    json!({ "status": status, "error": error, "exit_code": exit_code }).to_string()
}

impl Engine for HookedEngine {
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure> {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            self.run_before(script, cancel, log)?;
            self.engine.run(script, cancel, log)
        }));
        // A panic of the engine is one more outcome.
        let panicked = || Err(Failure::script("the engine panicked"));
        self.run_after(script, ran.as_ref().unwrap_or(&panicked()), log);
        ran.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn stack_bytes(&self) -> usize {
        self.engine.stack_bytes()
    }

    fn warm_up(&self) {
        self.engine.warm_up();
    }

    fn unavailable(&self) -> Option<String> {
        let hooks = [&self.before, &self.after];
        self.engine
            .unavailable()
            .or_else(|| hooks.into_iter().flatten().find_map(Hook::unavailable))
    }

    fn runs_processes(&self) -> bool {
        self.engine.runs_processes()
    }

    fn capabilities(&self) -> Vec<String> {
        self.engine.capabilities()
    }

    fn script_type(&self) -> &ScriptType {
        self.engine.script_type()
    }
}

/// Takes the lines of a hook into the log of its job, each with its mark. What else a script may tell is the job's alone.
struct HookLog<'a> {
    key: &'static str,
    log: &'a dyn Log,
}

impl Log for HookLog<'_> {
    fn line(&self, stream: Stream, line: &str) {
        self.log.line(stream, &format!("{}: {line}", self.key));
    }

    fn wants_output(&self) -> bool {
        true
    }

    fn output(&self, line: &str) {
        self.line(Stream::Stdout, line);
    }

    fn output_again(&self, _: &str) {}

    fn remark(&self, line: &str) {
        self.log.remark(&format!("{}: {line}", self.key));
    }

    fn request(&self, request: ScriptRequest) {
        request.answers.answer(&Err("a hook can ask for nothing: its job can".to_owned()));
    }
}
