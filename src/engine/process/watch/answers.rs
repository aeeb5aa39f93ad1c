//! The answers to what a job's child asks on its channel: lines of JSON, each `{"ok": true}` or
//! `{"error": "why"}`, in the order of the requests.
//!
//! A child that does not read them is not waited for. Once its pipe is full, the pipe is closed, so that a
//! reader sees its end after the answers that fitted.

use std::io::{self, PipeWriter, Write};
use std::sync::{Mutex, PoisonError};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::engine::Answers;

/// The longest reason in an answer. With it a line is written whole or not at all.
const REASON_CHARS_MAX: usize = 500;

/// The writing end of a child's pipe.
#[derive(Debug)]
pub(super) struct AnswerPipe(Mutex<Option<PipeWriter>>);

impl AnswerPipe {
    /// Writes into a pipe.
    ///
    /// # Errors
    /// The errors of setting it up.
    pub(super) fn new(write_end: PipeWriter) -> io::Result<Self> {
        fcntl(&write_end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self(Mutex::new(Some(write_end))))
    }

    fn write_line(&self, line: &str) {
        self.with(|end| {
            let written = end.as_mut().map(|end| end.write(line.as_bytes()));
            // Less than a page is written whole or not at all.
            if !matches!(written, Some(Ok(bytes)) if bytes == line.len()) {
                *end = None;
            }
        });
    }

    fn with(&self, change: impl FnOnce(&mut Option<PipeWriter>)) {
        // No code panics while it holds it.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Answers for AnswerPipe {
    fn answer(&self, done: &Result<(), String>) {
        self.write_line(&match done {
            Ok(()) => "{\"ok\":true}\n".to_owned(),
            Err(why) => {
                let why: String = why.chars().take(REASON_CHARS_MAX).collect();
                format!("{}\n", serde_json::json!({ "error": why }))
            }
        });
    }

    fn answer_with(&self, result: &str) {
        self.write_line(&format!("{{\"ok\":{result}}}\n"));
    }

    fn close(&self) {
        self.with(|end| *end = None);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn answers_that_nobody_reads_end_in_the_end_of_the_pipe() {
        let (mut read_end, write_end) = io::pipe().expect("a pipe");
        let answers = AnswerPipe::new(write_end).expect("set up");
        for _ in 0..100_000 {
            answers.answer(&Ok(()));
        }
        let mut text = String::new();
        read_end.read_to_string(&mut text).expect("its end");
        assert!(text.lines().count() > 1000 && text.lines().all(|line| line == "{\"ok\":true}"));
    }

    #[test]
    fn reason_of_any_length_fits_into_a_page() {
        let (mut read_end, write_end) = io::pipe().expect("a pipe");
        let answers = AnswerPipe::new(write_end).expect("set up");
        answers.answer(&Err("\u{1}".repeat(100_000)));
        answers.close();
        let mut text = String::new();
        read_end.read_to_string(&mut text).expect("its end");
        assert!(text.len() < 4096 && text.ends_with("\"}\n"), "{}", text.len());
    }
}
