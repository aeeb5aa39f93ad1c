//! Engines run scripts: a script, its limits and a way to cancel it go in, an outcome comes out.
//!
//! An engine knows neither Redis nor queues. It runs on a thread of its own, never on the async
//! runtime, and may block that thread until its deadline.

extern crate self as engine;
use hero_artifacts as artifacts;
use hero_config as config;
use hero_error as error;
use hero_proto as proto;
use hero_sandbox as sandbox;

#[cfg(test)]
#[path = "../test_support.rs"]
mod test_support;

mod backends;
mod before_start;
mod cancel;
pub mod heroscript;
mod hooks;
pub mod process;
pub mod rhai;
pub mod scripts;

pub use backends::{Backends, ObjectStore, ScriptRedis};
pub use cancel::{Cancel, StopReason};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::config::{EngineKind, JobConfig, SalConfig, TypeConfig, no_process};
use crate::proto::access::Bounds;
use crate::proto::job::{
    AskedBounds, AskedCall, AskedOutput, AskedWait, Checkpoint, FileBody, JobOutput, NamedFiles,
    NewChildren, OutputOverflow, Params, TraceParent,
};
use crate::proto::target::ScriptType;
pub use crate::sandbox::Usage;

/// The stack of a thread that runs an engine, unless the engine needs more. Only used pages become memory.
pub const STACK_SIZE_BYTES: usize = 64 * 1024 * 1024;

pub fn build(
    script_type: ScriptType,
    config: &TypeConfig,
    job: &JobConfig,
    sal: &SalConfig,
    backends: &Backends,
) -> Arc<dyn Engine> {
    let engine: Arc<dyn Engine> = match build_rhai(script_type.clone(), config, job, sal, backends)
    {
        Some(engine) => Arc::new(engine),
        None => Arc::new(process::CommandEngine::new(script_type, config, job)),
    };
    hooks::around(engine, config, job)
}

/// Returns the engine of a type whose scripts are interpreted here; `None` if they are processes.
fn build_rhai(
    script_type: ScriptType,
    config: &TypeConfig,
    job: &JobConfig,
    sal: &SalConfig,
    backends: &Backends,
) -> Option<heroscript::HeroScriptEngine> {
    let (limits, modules) = (&config.limits, &config.modules);
    let engine = match config.engine {
        EngineKind::Osis | EngineKind::HeroScript => {
            rhai::RhaiEngine::osis(script_type, limits, job)
        }
        EngineKind::Sal => rhai::RhaiEngine::sal(script_type, limits, job, sal),
        EngineKind::Command => return None,
    };
    let engine = engine.with_backends(backends).with_type(config);
    let takes_rhai = config.engine != EngineKind::HeroScript;
    Some(heroscript::HeroScriptEngine::new(engine, modules, takes_rhai))
}

/// The outputs of a job's prerequisites, by id and by name in the job's graph; `None` for one that did not finish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inputs {
    pub by_name: BTreeMap<String, Option<Arc<str>>>,
    /// Each prerequisite once: its name in the job's graph, else its id.
    pub prerequisites: Vec<String>,
    /// The ids of prerequisites by the names of their jobs, for those that no other prerequisite has.
    pub jobs: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputFiles {
    pub own: NamedFiles,
    /// The files that its prerequisites left, by the names or the ids of these.
    pub of_prerequisites: BTreeMap<String, NamedFiles>,
    pub stdin: Option<FileBody>,
}

impl InputFiles {
    pub fn is_empty(&self) -> bool {
        self.is_without_own() && self.of_prerequisites.is_empty()
    }

    /// Returns true if its submitter gave it none.
    pub fn is_without_own(&self) -> bool {
        self.own.is_empty() && self.stdin.is_none()
    }
}

/// The values of a job's secrets, by where its script finds them. They are printed nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValues {
    pub variables: BTreeMap<String, String>,
    pub files: BTreeMap<String, Vec<u8>>,
    /// All that are text, by the names of the secrets.
    pub by_name: BTreeMap<String, String>,
}

impl SecretValues {
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.files.is_empty()
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// A script with the parts of its job that an engine needs.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// The id of the job, which the script can read.
    pub job_id: &'a str,
    /// The submitter; empty if unknown.
    pub caller_id: &'a str,
    /// The context; empty if unknown.
    pub context_id: &'a str,
    /// The bounds of the token that submitted the job; `None` without bounds.
    pub token_bounds: Option<&'a Bounds>,
    /// Its place in a trace, a `traceparent`; `None` if it belongs to none.
    pub traceparent: Option<TraceParent>,
    /// The number of this attempt, from 1 on.
    pub attempt: u32,
    /// The attempts that may follow if this one fails.
    pub attempts_left: u32,
    /// The start of this attempt by Redis's clock, as the job keeps it; `None` outside of a job.
    pub started_at: Option<Timestamp>,
    /// The state that an earlier attempt has kept, as JSON.
    pub state: Option<&'a str>,
    /// The event that ended the last wait of the job, as JSON.
    pub event: Option<&'a str>,
    pub source: &'a str,
    /// The extension of its file; empty for the first of its type.
    pub extension: &'a str,
    pub env: &'a BTreeMap<String, String>,
    pub args: &'a [String],
    pub params: &'a Params,
    pub bounds: &'a AskedBounds,
    pub secrets: &'a SecretValues,
    pub inputs: &'a Inputs,
    /// The files that it is given; `None` where there cannot be any.
    pub files: Option<&'a InputFiles>,
    /// The fate of an output over its bound; `None` leaves it to the configuration.
    pub output_overflow: Option<OutputOverflow>,
    pub deadline: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Success {
    /// The output; JSON if the result is a map or an array.
    pub output: JobOutput,
    /// The exit code, if a process ran.
    pub exit_code: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{message}")]
    Script {
        /// The error of the job, with line and column if the engine knows them.
        message: String,
        exit_code: Option<i32>,
    },
    /// The machine could not start the script, as `before_start.rs` decides. Nothing of the script ran.
    #[error("{message}")]
    Machine {
        /// The step that failed, and the reason.
        message: String,
    },
    /// The kernel killed the script for memory that its unit or the machine lacked. It runs again, as after a crash.
    #[error("{message}")]
    Killed { message: String, exit_code: Option<i32> },
    /// The script asks to be run again later; this is no attempt of those that it has.
    #[error("{message}")]
    Postponed {
        message: String,
        exit_code: Option<i32>,
        /// The wait that it wants; `None` to leave that to Hero.
        delay: Option<Duration>,
    },
    /// The script failed and says that no further attempt can succeed.
    #[error("{message}")]
    Discarded { message: String, exit_code: Option<i32> },
    /// The script waits: its job runs again once what it waits for has come.
    #[error("waits for {}", wait.words())]
    Waits { wait: Box<AskedWait>, exit_code: Option<i32> },
    /// The job is invalid: no attempt can run it.
    #[error("{message}")]
    Invalid {
        /// The error of the job: `invalid job: FIELD …`.
        message: String,
    },
    #[error("timeout")]
    Timeout,
    #[error("{0}")]
    Stopped(StopReason),
}

impl Failure {
    /// Returns the failure of a job that asks for bounds of a process, which its script is not.
    fn of_bounds(script: &Script<'_>, script_type: &ScriptType) -> Option<Self> {
        let field = script.bounds.first_field()?;
        Some(Self::Invalid { message: no_process(field, script_type).to_string() })
    }

    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Script { exit_code, .. }
            | Self::Killed { exit_code, .. }
            | Self::Postponed { exit_code, .. }
            | Self::Discarded { exit_code, .. }
            | Self::Waits { exit_code, .. } => *exit_code,
            Self::Machine { .. } | Self::Invalid { .. } | Self::Timeout | Self::Stopped(_) => None,
        }
    }

    #[must_use]
    pub(crate) fn with_exit_code(mut self, code: Option<i32>) -> Self {
        if let Self::Script { exit_code, .. }
        | Self::Killed { exit_code, .. }
        | Self::Postponed { exit_code, .. }
        | Self::Discarded { exit_code, .. }
        | Self::Waits { exit_code, .. } = &mut self
        {
            *exit_code = code;
        }
        self
    }

    pub fn script(message: impl Into<String>) -> Self {
        Self::Script { message: message.into(), exit_code: None }
    }

    /// Returns the failure of a script that asks to be run again after a time, for a reason, which may be empty.
    pub fn postponed(delay: Option<Duration>, why: String, exit_code: Option<i32>) -> Self {
        let message = if why.is_empty() { "postponed by the script".to_owned() } else { why };
        Self::Postponed { message, exit_code, delay }
    }

    /// Returns the failure of a script that wants no further attempt, with the reason, if it has one.
    pub fn discarded(why: String, exit_code: Option<i32>) -> Self {
        let message = if why.is_empty() { "discarded by the script".to_owned() } else { why };
        Self::Discarded { message, exit_code }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output; for Rhai the output of `print`.
    Stdout,
    /// Standard error; for Rhai the output of `debug`.
    Stderr,
}

/// Receives the log lines of one job. It never blocks, and its memory is bounded.
pub trait Log: Send + Sync {
    /// Logs one line, without its line end. Bytes that are not UTF-8 are escaped.
    fn line(&self, stream: Stream, line: &str);

    /// Takes the text after the last line end of a stream, each time it changes; empty once its line has ended.
    fn unfinished(&self, _stream: Stream, _text: &str) {}

    /// Returns true if the log takes the lines of the job's output.
    fn wants_output(&self) -> bool {
        false
    }

    /// Takes one line of the job's output, which is no line of its log.
    fn output(&self, _line: &str) {}

    /// Logs one line of the output of a failed script. A log that wants output has got it before.
    fn output_again(&self, line: &str) {
        self.line(Stream::Stdout, line);
    }

    /// Logs a line of Hero's own, even to a full log.
    fn remark(&self, line: &str) {
        self.line(Stream::Stderr, line);
    }

    /// Takes the files that the script left, and in words those that are not kept; empty if all are.
    fn files(&self, _files: NamedFiles, _not_kept: &str) {}

    /// Records that the first `bytes` bytes of the output were cut off.
    fn output_truncated(&self, _bytes: u64) {}

    /// Records the resources that the process of the job has used, after it has ended.
    fn used(&self, _usage: &Usage) {}

    /// Records the progress of the job, from 0 to 1, with a message. A script may report at any rate; the latest counts.
    fn progress(&self, _fraction: f64, _text: &str) {}

    /// Takes a request of the script, which is answered later. Here there is nobody who could do it.
    fn request(&self, request: ScriptRequest) {
        let no_job = || "there is no job: the script runs without an actor".to_owned();
        request.answers.answer(&Err(request.asked.err().unwrap_or_else(no_job)));
    }
}

/// A request of a script to Hero while it runs.
#[derive(Debug)]
pub struct ScriptRequest {
    /// The request, or the reason why nobody can do it.
    pub asked: Result<RequestKind, String>,
    pub answers: Arc<dyn Answers>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Keep a state for the next attempt of the job.
    State(Checkpoint),
    Submit(NewChildren),
    Inputs(AskedOutput),
    Next(AskedCall),
}

/// Takes the answers to the requests of one script, in the order of the requests. It never blocks.
pub trait Answers: Send + Sync + fmt::Debug {
    /// Takes one answer: the request was done, or was refused for a reason.
    fn answer(&self, done: &Result<(), String>);

    /// Takes the answer to a request that was done and has a result, as JSON in one line.
    fn answer_with(&self, result: &str);

    fn close(&self);
}

pub trait Engine: Send + Sync {
    /// Runs one script to its end and blocks the calling thread. Returns soon after a stop is
    /// requested or the deadline has passed, when everything that the script started has ended.
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure>;

    fn stack_bytes(&self) -> usize {
        STACK_SIZE_BYTES
    }

    /// Starts preparations that make the first script faster, without waiting for them.
    fn warm_up(&self) {}

    /// Returns why scripts of this type cannot run on this machine (`no v in PATH`), or `None`.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Returns whether scripts are processes of their own, which the kernel kills before this one if memory runs out.
    fn runs_processes(&self) -> bool {
        false
    }

    /// Returns the names of the engine and its modules for the presence of an actor.
    fn capabilities(&self) -> Vec<String>;

    fn script_type(&self) -> &ScriptType;
}
