//! The meaning of an end: the failure that it is, and the setting that a script lacked.

use super::super::child::AskedEnd;
use crate::engine::Failure;
use crate::sandbox::Limit;

/// Returns the words for a limit above the job's own, in a sentence about a kill.
pub(in crate::process) fn above_the_job(limit: Limit) -> Option<&'static str> {
    match limit {
        Limit::UnitMemory => Some("its unit reached its MemoryMax"),
        Limit::SliceMemory => Some("the slice of its unit reached its MemoryMax"),
        Limit::MachineMemory => Some("the machine had no more memory"),
        _ => None,
    }
}

pub(in crate::process) fn asked_failure(asked: AskedEnd, exit_code: Option<i32>) -> Failure {
    match asked {
        AskedEnd::RetryIn(delay, why) => Failure::postponed(Some(delay), why, exit_code),
        AskedEnd::Discard(why) => Failure::discarded(why, exit_code),
        AskedEnd::Wait(Ok(wait)) => Failure::Waits { wait: Box::new(wait), exit_code },
        AskedEnd::Wait(Err(message)) | AskedEnd::Unreadable(message) => {
            Failure::Script { message, exit_code }
        }
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
