//! The text after the last line of a followed log that has no line end yet, such as a progress bar or a question.

use std::io::{self, IsTerminal};

use crate::cli::output;
use crate::cli::progress::{BEGIN, END};
use crate::error::Error;
use crate::proto::text::escape;

/// The text as it is printed: at a terminal in the last line, where the next text replaces it; elsewhere as the
/// script writes it, with a carriage return before a text that replaces another.
pub(super) struct PrintedEnd {
    is_terminal: bool,
    is_shown: bool,
    raw: bool,
    text: String,
}

impl PrintedEnd {
    /// Prints no text into a file or pipe whose lines have to stay as they are, if not `in_files`.
    pub(super) fn new(in_files: bool, raw: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { is_terminal, is_shown: is_terminal || in_files, raw, text: String::new() }
    }

    /// Prints the text that stands now; empty if none does.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Error> {
        if !self.is_shown || text == self.text {
            return Ok(());
        }
        if self.is_terminal {
            let shown = if self.raw { text.to_owned() } else { escape(text) };
            output::unchanged(format!("{BEGIN}{shown}{END}").as_bytes())?;
        } else if text.is_empty() {
            // Its line is still to come.
            return Ok(());
        } else if let Some(more) = text.strip_prefix(self.text.as_str()) {
            output::unchanged(more.as_bytes())?;
        } else {
            output::unchanged(format!("\r{text}").as_bytes())?;
        }
        text.clone_into(&mut self.text);
        Ok(())
    }

    /// Makes room for the next line. Returns the part of it that is already printed.
    pub(super) fn before<'l>(&mut self, line: &'l str) -> Result<&'l str, Error> {
        let printed = std::mem::take(&mut self.text);
        if printed.is_empty() {
            return Ok("");
        }
        if self.is_terminal {
            output::unchanged(b"\r\x1b[K")?;
        } else if line.starts_with(printed.as_str()) {
            return Ok(&line[..printed.len()]);
        } else {
            output::unchanged(b"\r")?;
        }
        Ok("")
    }

    /// Ends the last line.
    pub(super) fn end(mut self) -> Result<(), Error> {
        let is_open = !self.text.is_empty() && !self.is_terminal;
        self.before("")?;
        if is_open { output::unchanged(b"\n") } else { Ok(()) }
    }
}
