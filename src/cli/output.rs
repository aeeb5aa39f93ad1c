//! Output of all commands: results to standard output, everything else to standard error.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::terminal_style::escape_foreign;
use crate::daemon::reads_journal;
use crate::error::{Error, Exit, reason};
use crate::proto::job::JobOutput;
use crate::proto::text::{at_terminal, escape, escape_in_json, escape_lines};

/// Added to a signal's number, the exit code of a program that the signal ended.
pub(super) const SIGNALLED: u8 = 128;

/// Prints the error's message, unless it is empty.
pub fn print_error(error: &Error) {
    if !error.message.is_empty() {
        let lines = error_lines(&error.message, reads_journal());
        let _ = io::stderr().lock().write_all(lines.as_bytes());
    }
}

/// Returns the lines of an error. The journal takes the priority of a line from its start: 3 is err.
fn error_lines(message: &str, in_journal: bool) -> String {
    let text = escape_lines(&format!("hero: {message}"));
    let priority = if in_journal { "<3>" } else { "" };
    text.lines().flat_map(|line| [priority, line, "\n"]).collect()
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Writes a text. A terminal gets the control characters of its style alone: a job or a server may have written the text.
pub(super) fn text(text: &str) -> Result<(), Error> {
    unchanged(at_own_terminal(text).as_bytes())
}

fn at_own_terminal(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { escape_foreign(text).into() } else { text.into() }
}

/// Writes the ids of accepted jobs. If that fails, also because the reader closed the pipe, the
/// error has them: nobody else knows that these jobs will run.
pub(super) fn accepted(ids: &str) -> Result<(), Error> {
    write(at_own_terminal(ids).as_bytes()).map_err(|error| {
        let (why, ids) = (reason(&error), ids.trim_end());
        let message = format!("cannot write to standard output: {why}; accepted: {ids}");
        Error::new(Exit::Output, message)
    })
}

pub(super) fn line(line: &str) -> Result<(), Error> {
    text(&format!("{line}\n"))
}

/// Writes the output of a job: text with one line end, nothing for an empty output. At a terminal its control characters
/// are escaped, unless `raw`; into files and pipes it goes unchanged.
pub(super) fn result(output: &JobOutput, raw: bool) -> Result<(), Error> {
    note_if_cut(output);
    match output {
        JobOutput::Text(text) if text.is_empty() => Ok(()),
        JobOutput::Text(text) => {
            of_job(format!("{}\n", text.strip_suffix('\n').unwrap_or(text)), raw)
        }
        JobOutput::Bytes(bytes) => of_job(bytes, raw),
    }
}

/// Writes the output of a job as Redis has it, with the same difference at a terminal.
pub(super) fn stored(output: &JobOutput, raw: bool) -> Result<(), Error> {
    note_if_cut(output);
    of_job(output.as_bytes(), raw)
}

/// Writes what a job wrote: at a terminal no style of its own either, which could pass for one of this program.
pub(super) fn of_job(bytes: impl AsRef<[u8]>, raw: bool) -> Result<(), Error> {
    if raw || !io::stdout().is_terminal() {
        unchanged(bytes.as_ref())
    } else {
        unchanged(escape_lines(&String::from_utf8_lossy(bytes.as_ref())).as_bytes())
    }
}

/// Says if the start of an output is missing: a program that reads it sees no mark.
fn note_if_cut(output: &JobOutput) {
    if let Some(bytes) = output.cut_bytes() {
        note(&format!(
            "hero: the first {bytes} bytes of the output were cut off (job.output_size_max); --output-overflow fail \
             refuses such an output"
        ));
    }
}

pub(super) fn unchanged(bytes: &[u8]) -> Result<(), Error> {
    write(bytes).map_err(|error| lost(&error))
}

/// Writes one JSON document. A terminal gets the control characters in it that JSON leaves as they are in its spelling.
pub(super) fn json(document: &Value) -> Result<(), Error> {
    let text = document.to_string();
    line(&if io::stdout().is_terminal() { escape_in_json(&text) } else { text })
}

/// Writes a message to standard error, with control characters escaped, and ignores failures.
pub(super) fn note(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape_lines(message));
}

/// Writes messages of this program to standard error, a line each.
pub(super) fn notes(messages: impl IntoIterator<Item: Display>) {
    messages.into_iter().for_each(|message| note(&format!("hero: {message}")));
}

/// Writes a line to a terminal at standard error, over the one before; the empty line removes it.
pub(super) fn passing_note(line: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\u{1b}[K{}", escape(line));
    }
}

/// Writes a line of a job's log to standard error and ignores failures.
pub(super) fn log_note(line: &str) {
    let mut err = io::stderr().lock();
    let shown = if err.is_terminal() { escape_lines(at_terminal(line)) } else { line.to_owned() };
    let _ = writeln!(err, "{shown}");
}

/// Returns a time for people: local time with its offset at a terminal, else UTC.
pub(super) fn time(time: Timestamp) -> String {
    if io::stdout().is_terminal() {
        time.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
    } else {
        format!("{time:.3}")
    }
}

/// Writes a line of a job's log. At a terminal its control characters are escaped, unless `raw`, and a carriage
/// return lets what follows replace what stands.
pub(super) fn log_line(text: &str, raw: bool) -> Result<(), Error> {
    let is_shown = !raw && io::stdout().is_terminal();
    of_job(format!("{}\n", if is_shown { at_terminal(text) } else { text }), raw)
}

/// Returns the error of an output that was not written. A reader that closed the pipe, such as `head`, is no error.
pub(super) fn lost(error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Error::new(Exit::Ok, "");
    }
    Error::new(Exit::Output, format!("cannot write to standard output: {}", reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_priority_err_in_the_journal() {
        assert_eq!(error_lines("one\ntwo\u{1b}", true), "<3>hero: one\n<3>two\\u{1b}\n");
        assert_eq!(error_lines("one", false), "hero: one\n");
    }

    #[test]
    fn closed_pipe_is_no_error_and_full_disk_is_one() {
        let left = lost(&io::ErrorKind::BrokenPipe.into());
        assert_eq!((left.exit, left.message.as_str()), (Exit::Ok, ""));
        let full = lost(&io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit, Exit::Output);
    }
}
