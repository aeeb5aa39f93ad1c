//! The only way out: standard output for what was asked for, standard error for the rest.

use std::io::{self, Write};

use serde_json::Value;

use super::table::escape_lines;
use crate::error::{Error, Exit};

/// Prints why the program ends, if there is something to say.
pub fn print_error(error: &Error) {
    if !error.message.is_empty() {
        note(&format!("hero: {}", escape_lines(&error.message)));
    }
}

/// Writes a text as it is.
pub(super) fn text(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| lost(&error))
}

/// Writes one line.
pub(super) fn line(line: &str) -> Result<(), Error> {
    text(&format!("{line}\n"))
}

/// Writes what a job left, ended by one line end; nothing if it left nothing.
pub(super) fn result(output: &str) -> Result<(), Error> {
    match output.strip_suffix('\n').unwrap_or(output) {
        "" if output.is_empty() => Ok(()),
        output => line(output),
    }
}

/// Writes what was asked for: one JSON document, or text that ends its own lines.
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

/// Writes a line to standard error. Whether anybody reads it is no concern of what is being done.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A reader that has seen enough, such as `head`, is nothing to complain about.
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
    fn a_reader_that_left_is_no_error_and_a_full_disk_is_one() {
        let left = lost(&io::ErrorKind::BrokenPipe.into());
        assert_eq!((left.exit, left.message.as_str()), (Exit::Ok, ""));
        let full = lost(&io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit, Exit::Unavailable);
    }
}
