//! Engines: a script, its limits and a way to cancel it go in, an outcome comes out.
//!
//! An engine knows no Redis and no job queue. It runs on a thread of its own, never on the async
//! runtime, and may block there for as long as its deadline allows.

mod cancel;
mod outside;
pub mod process;
pub mod rhai;

pub use cancel::{Cancel, StopReason};
pub use outside::{GuestRedis, Objects, Outside};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{EngineKind, JobConfig, SalConfig, TypeConfig};
use crate::proto::target::ScriptType;

/// The stack a thread needs on which an engine runs. Rhai recurses on it, once per nested call,
/// expression and value. The tests run the deepest that the default limits allow, 128 calls and
/// 10 000 nested arrays; that takes between 16 and 32 MiB, in debug and release builds alike, and
/// this is twice as much. It is address space: only what a script really uses becomes memory.
pub const STACK_SIZE_BYTES: usize = 64 * 1024 * 1024;

/// The engine that the configuration asks for.
pub fn build(
    script_type: ScriptType,
    config: &TypeConfig,
    job: &JobConfig,
    sal: &SalConfig,
    outside: &Outside,
) -> Arc<dyn Engine> {
    match config.engine {
        EngineKind::Osis => {
            let engine = rhai::RhaiEngine::osis(script_type, &config.limits, job);
            Arc::new(engine.with_outside(outside))
        }
        EngineKind::Sal => {
            let engine = rhai::RhaiEngine::sal(script_type, &config.limits, job, sal);
            Arc::new(engine.with_outside(outside))
        }
        EngineKind::Command => Arc::new(process::CommandEngine::new(script_type, config, job)),
    }
}

/// What the prerequisites of a job left, by their ids and by the names that they have in its graph;
/// nothing where one did not finish.
pub type Inputs = BTreeMap<String, Option<Arc<str>>>;

/// What an engine is given to run.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// The id of the job, for the script's own use.
    pub job_id: &'a str,
    /// Who submitted the job; empty if nobody said.
    pub caller_id: &'a str,
    /// In whose context it runs; empty if nobody said.
    pub context_id: &'a str,
    /// The text of the script.
    pub source: &'a str,
    /// The job's own environment variables.
    pub env: &'a BTreeMap<String, String>,
    /// What its prerequisites left; empty if it has none.
    pub inputs: &'a Inputs,
    /// When it must have ended.
    pub deadline: Instant,
}

/// What a script that succeeded left behind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Success {
    /// Its result as text; JSON if the engine had a map or an array to give.
    pub output: String,
    /// The exit code, where a process ran.
    pub exit_code: Option<i32>,
}

/// Why a script did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The script failed by itself, or hit a limit; the message is the job's error.
    Script {
        /// What the job's `error` says, with line and column where the engine knows them.
        message: String,
        /// The exit code, where a process ran and exited.
        exit_code: Option<i32>,
    },
    /// The job is at fault and cannot be run at all, however often it is tried.
    Invalid {
        /// What the job's `error` says: `invalid job: FIELD …`.
        message: String,
    },
    /// It ran past its deadline and has been stopped.
    Timeout,
    /// It was told to stop, and has been stopped.
    Stopped(StopReason),
}

impl Failure {
    /// Returns a failure of the script without an exit code.
    pub fn script(message: impl Into<String>) -> Self {
        Self::Script { message: message.into(), exit_code: None }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Script { message, .. } | Self::Invalid { message } => f.write_str(message),
            Self::Timeout => f.write_str("timeout"),
            Self::Stopped(StopReason::Requested) => f.write_str("stopped_by_request"),
            Self::Stopped(StopReason::Shutdown) => f.write_str("stopped by the shutdown"),
            Self::Stopped(StopReason::LeaseLost) => f.write_str("stopped with the lease lost"),
        }
    }
}

/// Which of a job's two streams a log line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output; for Rhai what `print` writes.
    Stdout,
    /// Standard error; for Rhai what `debug` writes.
    Stderr,
}

/// What the process of a job has used, with all it has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The processor time.
    pub cpu: Duration,
    /// The most memory at a time, in bytes: that of the whole job where it has a control group of
    /// its own, else that of one process, which is at least what this process had when it started
    /// it, as it began as its copy.
    pub memory_bytes: u64,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that it ran into.
    pub limit: Option<process::sandbox::Limit>,
}

/// Takes the log lines of one job. It never blocks and it bounds what it keeps.
pub trait Log: Send + Sync {
    /// One line, without its line end. Bytes that are no UTF-8 have been replaced.
    fn line(&self, stream: Stream, line: &str);

    /// What the job's own process has used, once it has ended.
    fn used(&self, usage: &Usage) {
        let _ = usage;
    }

    /// How far the job has come, from 0 to 1, and what it says of that. A script may tell as often
    /// as it likes; the latest counts. Who only wants lines may leave it out.
    fn progress(&self, fraction: f64, text: &str) {
        let _ = (fraction, text);
    }
}

/// Runs the scripts of one script type.
pub trait Engine: Send + Sync {
    /// Runs one script to its end. Blocks the calling thread; returns soon after `cancel` is
    /// requested or the deadline has passed, with everything it started stopped.
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure>;

    /// Gets ready what makes the first script quicker, without waiting for it.
    fn warm_up(&self) {}

    /// Whether scripts of this type can run on this machine, as a reason if they cannot
    /// (`no v in PATH`).
    fn unavailable(&self) -> Option<String>;

    /// The engine and its modules, as presence lists them.
    fn capabilities(&self) -> Vec<String>;

    /// The script type it was made for.
    fn script_type(&self) -> &ScriptType;
}
