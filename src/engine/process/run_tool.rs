//! Runs the tools that prepare a script: compilers, checks, installers.

use std::path::Path;

use super::child::{self, ChildReport, Ended, Origin, Spec, Watch};
use super::end::describe;
use super::prepare::{Tool, ToolResult, Until, basic_environment};
use crate::engine::{Failure, Log};

/// The bytes that are kept of each output stream of a tool.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// The characters of a tool's messages in an error.
const ERROR_CHARS_MAX: usize = 2 * 1024;

/// Runs a tool as a child: see [`super::prepare::RunTool`].
pub(super) fn run_tool(
    tool: Tool<'_>,
    until: Until<'_>,
    log: Option<&dyn Log>,
) -> Result<ToolResult, Failure> {
    let mut env = basic_environment(tool.folder);
    env.extend(tool.env);
    let spec = Spec {
        program: tool.program,
        args: tool.args,
        env: env.into_iter().collect(),
        cwd: tool.folder,
        home: tool.folder,
        sandbox: tool.sandbox,
        read: &[],
    };
    let watch = Watch {
        cancel: until.cancel,
        deadline: until.deadline,
        kill_grace: tool.kill_grace,
        stdout_bytes_max: OUTPUT_BYTES_MAX,
        stderr_bytes_max: OUTPUT_BYTES_MAX,
        log,
        log_stdout: true,
        channel: false,
    };
    let report = child::run(&spec, &watch, Origin::Cold).map_err(|error| {
        Failure::before_start(format!("cannot run {}", spec.program.display()), &error)
    })?;
    match report.ended {
        Ended::Timeout => Err(Failure::Timeout),
        Ended::Stopped(reason) => Err(Failure::Stopped(reason)),
        Ended::Itself if report.status.success() => {
            Ok(Ok(String::from_utf8_lossy(&report.stdout).into_owned()))
        }
        Ended::Itself
        | Ended::TooMuchOutput
        | Ended::TooMuchOnDisk
        | Ended::TooMuchMemory
        | Ended::TooManyProcesses => Ok(Err(messages(&report, tool.folder))),
    }
}

/// Returns the messages of a failed tool, with the files in its folder by their names alone.
fn messages(report: &ChildReport, folder: &Path) -> String {
    let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let text = match (of(&report.stderr), of(&report.stdout)) {
        (stderr, stdout) if stderr.is_empty() => stdout,
        (stderr, _) => stderr,
    };
    let text = text.replace(&format!("{}/", folder.display()), "");
    if text.is_empty() {
        return describe(report.status);
    }
    match text.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}
