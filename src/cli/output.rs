//! Output of all commands: results to standard output, everything else to standard error.

use std::io::{self, Write};

use serde_json::Value;

use super::table::escape_lines;
use crate::error::{Error, Exit};

/// Prints the error's message, unless it is empty.
pub fn print_error(error: &Error) {
    if !error.message.is_empty() {
        note(&format!("hero: {}", escape_lines(&error.message)));
    }
}

/// Writes a text unchanged.
pub(super) fn text(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| lost(&error))
}

/// Writes one line.
pub(super) fn line(line: &str) -> Result<(), Error> {
    text(&format!("{line}\n"))
}

/// Writes the output of a job with one line end; nothing for an empty output.
pub(super) fn result(output: &str) -> Result<(), Error> {
    match output.strip_suffix('\n').unwrap_or(output) {
        "" if output.is_empty() => Ok(()),
        output => line(output),
    }
}

/// Writes a result as one JSON document, or as text with its own line ends.
pub(super) fn print(
    as_json: bool,
    document: impl FnOnce() -> Value,
    readable: impl FnOnce() -> String,
) -> Result<(), Error> {
    if as_json { json(&document()) } else { text(&readable()) }
}

/// Writes one JSON document.
pub(super) fn json(document: &Value) -> Result<(), Error> {
    line(&document.to_string())
}

/// Writes a line to standard error and ignores failures.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The error of a failed write. A reader that closed the pipe, such as `head`, is no error.
fn lost(error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Error::new(Exit::Ok, "");
    }
    Error::new(Exit::Unavailable, format!("cannot write to standard output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_pipe_is_no_error_and_full_disk_is_one() {
        let left = lost(&io::ErrorKind::BrokenPipe.into());
        assert_eq!((left.exit, left.message.as_str()), (Exit::Ok, ""));
        let full = lost(&io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit, Exit::Unavailable);
    }
}
