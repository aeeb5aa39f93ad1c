//! The answers to what a job's child asks on its channel: lines of JSON, each `{"ok": …}` or
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

/// The longest line that a pipe has room for beside others, as the kernel makes it.
const USUAL_LINE_MAX: usize = 32 * 1024;
/// The longest answer: a pipe may be made as large without a privilege.
const LINE_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct AnswerPipe(Mutex<Option<PipeWriter>>);

impl AnswerPipe {
    pub(super) fn new(write_end: PipeWriter) -> io::Result<Self> {
        fcntl(&write_end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self(Mutex::new(Some(write_end))))
    }

    fn write_line(&self, line: &str) {
        self.with(|end| {
            // A line that the pipe has no room for is cut, which ends the pipe.
            if let Some(end) = end.as_ref().filter(|_| line.len() > USUAL_LINE_MAX) {
                let _ = fcntl(end, FcntlArg::F_SETPIPE_SZ(size_for(line.len())));
            }
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
        let line = format!("{{\"ok\":{result}}}\n");
        if line.len() > LINE_MAX {
            let bytes = line.len();
            let why = format!("the answer has {bytes} bytes as JSON, more than {LINE_MAX}");
            return self.answer(&Err(why));
        }
        self.write_line(&line);
    }

    fn close(&self) {
        self.with(|end| *end = None);
    }
}

fn size_for(line: usize) -> i32 {
    i32::try_from(line.next_power_of_two().min(LINE_MAX)).unwrap_or(i32::MAX)
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
    fn answer_of_a_megabyte_is_written_whole_and_a_longer_one_is_an_error() {
        let (mut read_end, write_end) = io::pipe().expect("a pipe");
        let answers = AnswerPipe::new(write_end).expect("set up");
        let mut text = vec![0; LINE_MAX];
        for bytes in [100, LINE_MAX - 10, 100] {
            let result = format!("\"{}\"", "x".repeat(bytes - 2));
            answers.answer_with(&result);
            let line = &mut text[..bytes + 8];
            read_end.read_exact(line).expect("its bytes");
            assert!(line.starts_with(b"{\"ok\":\"x") && line.ends_with(b"x\"}\n"));
        }
        answers.answer_with(&"1".repeat(LINE_MAX));
        answers.close();
        let mut text = String::new();
        read_end.read_to_string(&mut text).expect("its end");
        assert!(text.starts_with("{\"error\":\"the answer has"), "{text:.80}");
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
