//! Runs a program of the configuration once, with a text as its standard input.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::child::{self, Ended, Spec, Watch};
use super::end::failed_message;
use super::prepare::{Scratch, basic_environment};
use crate::config::SandboxConfig;
use crate::engine::Cancel;
use crate::error::reason;
use crate::sandbox::Sandbox;

const OUTPUT_BYTES_MAX: u64 = 16 << 10;
/// The time to end after the deadline, before it is killed.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// A program to run. Its environment has what any program needs, and nothing of this process.
pub struct FedProgram<'a> {
    /// The file of the program, then its arguments.
    pub command: &'a [String],
    pub input: &'a [u8],
    pub sandbox: &'a SandboxConfig,
    pub timeout: Duration,
}

/// Runs a program to its end. Blocks. The error is why it could not be started, or did not end with 0 in time.
pub fn feed_program(fed: &FedProgram<'_>) -> Result<(), String> {
    let Some((program, args)) = fed.command.split_first() else { return Ok(()) };
    let failed = |error: std::io::Error| format!("cannot run {program}: {}", reason(&error));
    let scratch = Scratch::new().map_err(failed)?;
    let input = scratch.file("message.json", fed.input).map_err(failed)?;
    let input = File::open(input).map_err(failed)?;
    let sandbox = Sandbox::of_type(fed.sandbox);
    let spec = Spec {
        program: Path::new(program).to_owned(),
        args: args.iter().map(Into::into).collect(),
        env: basic_environment(scratch.path()),
        cwd: scratch.path(),
        home: scratch.path(),
        sandbox: &sandbox,
        stdin: Some(&input),
        read: &[],
    };
    let (cancel, deadline) = (Cancel::new(), Instant::now() + fed.timeout);
    let watch = Watch::of_tool(&cancel, (deadline, KILL_GRACE), OUTPUT_BYTES_MAX, None);
    let watch = Watch { keeps_stdout_end: true, ..watch };
    let report = child::run(&spec, &watch, None).map_err(failed)?;
    match report.ended {
        Ended::Itself if report.status.success() => Ok(()),
        Ended::Itself => Err(failed_message(report.status, &report.written.stderr_tail)),
        Ended::Timeout | Ended::Stopped(_) => Err(format!("{program} did not end in time")),
        Ended::Exceeded(limit) => Err(format!("{program} was ended by its sandbox: {limit}")),
    }
}
