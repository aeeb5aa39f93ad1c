//! Describes the end of a child: its status, its output, the failure that it is, and the setting that a script lacked.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::reason::reason_of;
use crate::engine::Log;
use crate::engine::process::watch::LineSplitter;
use crate::proto::job::JobOutput;
use crate::sandbox::Limit;

/// Describes a status: `exit code 3`, `killed by signal 9 (SIGKILL)`.
pub(in crate::process) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by signal {number} ({signal})"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// Describes a failed child: a line with its status and the reason, then the end of standard error if that has more.
pub(crate) fn failed_message(status: ExitStatus, stderr_tail: &str) -> String {
    let how = describe(status);
    match reason_of(stderr_tail) {
        None => how,
        Some(reason) if stderr_tail.trim() == reason => format!("{how}: {reason}"),
        Some(reason) => format!("{how}: {reason}\n{stderr_tail}"),
    }
}

/// Describes the limit that a child was ended for; `bytes_max` is the one of its output.
pub(crate) fn exceeded_message(limit: Limit, bytes_max: u64) -> String {
    let message = match limit {
        Limit::Output => return format!("output too large: more than {bytes_max} bytes"),
        Limit::Disk => {
            "disk full: more in the job's folder and its open files than its sandbox.disk allows"
        }
        Limit::Memory => {
            "out of memory: a process of the job took more than its sandbox.memory allows"
        }
        Limit::JobMemory => {
            "out of memory: the job as a whole took more than its sandbox.job_memory allows"
        }
        _ => "too many processes: more than the job's sandbox.processes allows",
    };
    message.to_owned()
}

pub(crate) fn output_text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns standard output as the output of a job: text without its last line end, other bytes as they are.
pub(in crate::process) fn job_output(bytes: Vec<u8>) -> JobOutput {
    match JobOutput::from(bytes) {
        JobOutput::Text(text) => output_text(text.as_bytes()).into(),
        bytes @ JobOutput::Bytes(_) => bytes,
    }
}

/// Logs the end of the standard output of a failed child, which may say why it failed.
pub(in crate::process) fn log_output(stdout: &[u8], log: &dyn Log) {
    const BYTES_MAX: usize = 64 * 1024;
    let rest = match stdout.len().checked_sub(BYTES_MAX) {
        Some(cut) if cut > 0 => {
            let end = &stdout[cut..];
            // From the start of a line, if there is one.
            let line = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            &end[line..]
        }
        _ => stdout,
    };
    let mut lines = LineSplitter::default();
    let mut emit = |line: &str| log.output_again(line);
    lines.push(rest, &mut emit);
    lines.finish(&mut emit);
}

/// Returns the words for a limit above the job's own, in a sentence about a kill.
pub(in crate::process) fn above_the_job(limit: Limit) -> Option<&'static str> {
    match limit {
        Limit::UnitMemory => Some("its unit reached its MemoryMax"),
        Limit::SliceMemory => Some("the slice of its unit reached its MemoryMax"),
        Limit::MachineMemory => Some("the machine had no more memory"),
        _ => None,
    }
}

/// Returns what `multiprocessing` cannot have in the sandbox, with the setting that opens it, if a traceback
/// of Python shows that: files for values, arrays and shared memory, or sockets for managers.
pub(in crate::process) fn missing_for_processes(
    stderr_tail: &str,
) -> Option<(&'static str, &'static str)> {
    const CLOSED: &str = "[Errno 13] Permission denied";
    const NO_SOCKET: &str = "PermissionError: [Errno 1] Operation not permitted";
    let last = stderr_tail.lines().last().unwrap_or_default();
    // Ansible names the folder in words of its own.
    let calls = ["SemLock(", "_posixshmem.shm_open("];
    let is_of_call = || calls.iter().any(|call| stderr_tail.contains(call));
    if last.contains(CLOSED) && (last.contains("/dev/shm") || is_of_call()) {
        return Some(("files in /dev/shm", "write = [\"/dev/shm\"]"));
    }
    let listens = ["multiprocessing/forkserver.py", "in SocketListener", "self._listener = Socket"];
    let has_no_socket = stderr_tail.lines().any(|line| line == NO_SOCKET);
    (has_no_socket && listens.iter().any(|text| stderr_tail.contains(text)))
        .then_some(("Unix sockets", "unix_sockets = true"))
}
