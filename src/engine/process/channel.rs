//! The descriptor on which a job's child tells more than a log line can: how far it has come, and
//! what its output is. Lines of JSON, each one of
//!
//! ```json
//! {"progress": 0.4, "text": "reading"}
//! {"log": "a line for the job's log"}
//! {"output": {"any": "value"}}
//! ```
//!
//! The child finds the number of the descriptor in its environment. The output that came last
//! takes the place of its standard output. Lines that say nothing of this are counted, and the
//! job's log says how many there were: a child that writes there by accident must not fail.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::lines::LINE_BYTES_MAX;
use crate::engine::{Log, Stream};

/// The descriptor's number in the child: the first after the standard ones.
pub(super) const NUMBER: &str = "3";
/// The variable by which the child knows it.
pub(super) const VARIABLE: &str = "HERO_FD";
/// What a line may have beside an output: the braces, the name, and escapes of a text.
const LINE_EXTRA_BYTES: u64 = 64 * 1024;
/// How an output begins whose line is too long to be read.
const OUTPUT: &[u8] = b"{\"output\"";

/// One message. Exactly one of the three, `text` only beside `progress`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    progress: Option<f64>,
    text: Option<String>,
    log: Option<String>,
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
}

/// `null` is an output too.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// The reading end, and what has come through it.
#[derive(Debug)]
pub(super) struct Channel {
    /// None once the other end is closed.
    read_end: Option<OwnedFd>,
    output_bytes_max: u64,
    line_bytes_max: usize,
    partial: Vec<u8>,
    /// Whether the line under way is too long, and the rest of it is passed over.
    passing_over: bool,
    unread_lines: u64,
    output: Option<String>,
    too_large: bool,
}

impl Channel {
    fn reading(read_end: Option<OwnedFd>, output_bytes_max: u64) -> Self {
        let line_bytes_max = output_bytes_max.saturating_add(LINE_EXTRA_BYTES);
        Self {
            read_end,
            output_bytes_max,
            line_bytes_max: usize::try_from(line_bytes_max).unwrap_or(usize::MAX),
            partial: Vec::new(),
            passing_over: false,
            unread_lines: 0,
            output: None,
            too_large: false,
        }
    }

    /// What to poll; none once the other end is closed.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.read_end.as_ref().map(AsFd::as_fd)
    }

    /// Whether an output came that is larger than outputs may be.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// The output that came last.
    pub(super) fn take_output(&mut self) -> Option<String> {
        self.output.take()
    }

    /// Reads what is there, at most a few buffers of it.
    pub(super) fn read(&mut self, log: Option<&dyn Log>) {
        const READS_AT_ONCE: usize = 4;
        let mut buffer = [0_u8; 16 * 1024];
        for _ in 0..READS_AT_ONCE {
            let Some(read_end) = &self.read_end else { break };
            match rustix::io::read(read_end, &mut buffer) {
                Ok(0) => self.read_end = None,
                Ok(count) => self.take(&buffer[..count], log),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => self.read_end = None,
            }
        }
    }

    /// Ends the last line, and says what could not be read.
    pub(super) fn close(&mut self, log: Option<&dyn Log>) {
        self.read_end = None;
        self.end_line(log);
        if let Some(log) = log
            && self.unread_lines > 0
        {
            let lines = std::mem::take(&mut self.unread_lines);
            let note = format!("{lines} lines on descriptor {NUMBER} were no messages to hero");
            log.line(Stream::Stderr, &note);
        }
    }

    fn take(&mut self, bytes: &[u8], log: Option<&dyn Log>) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.keep(piece);
            if pieces.peek().is_some() {
                self.end_line(log);
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.passing_over {
            return;
        }
        let room = self.line_bytes_max - self.partial.len();
        self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() <= room {
            return;
        }
        let begins = self.partial.iter().filter(|byte| !byte.is_ascii_whitespace());
        self.too_large |= begins.take(OUTPUT.len()).eq(OUTPUT);
        self.passing_over = true;
        self.unread_lines += 1;
        self.partial = Vec::new();
    }

    fn end_line(&mut self, log: Option<&dyn Log>) {
        let line = std::mem::take(&mut self.partial);
        if !std::mem::take(&mut self.passing_over) && !line.trim_ascii().is_empty() {
            self.heed(&line, log);
        }
    }

    fn heed(&mut self, line: &[u8], log: Option<&dyn Log>) {
        let message = serde_json::from_slice(line).ok();
        match message {
            Some(Message { progress: Some(fraction), text, log: None, output: None }) => {
                if let Some(log) = log {
                    log.progress(fraction.clamp(0.0, 1.0), &text.unwrap_or_default());
                }
            }
            Some(Message { progress: None, text: None, log: Some(text), output: None }) => {
                if let Some(log) = log {
                    log_text(&text, log);
                }
            }
            Some(Message { progress: None, text: None, log: None, output: Some(value) }) => {
                let text = match value {
                    Value::String(text) => text,
                    value => value.to_string(),
                };
                self.too_large |= text.len() as u64 > self.output_bytes_max;
                self.output = Some(text);
            }
            _ => self.unread_lines += 1,
        }
    }
}

/// Makes the channel of a child whose output has so many bytes at the most, and the end that is the
/// child's alone; none for a child that gets none.
///
/// # Errors
/// Those of `pipe(2)`.
pub(super) fn open(output_bytes_max: Option<u64>) -> io::Result<Option<(Channel, OwnedFd)>> {
    let Some(output_bytes_max) = output_bytes_max else { return Ok(None) };
    let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read_end, true)?;
    Ok(Some((Channel::reading(Some(read_end), output_bytes_max), write_end)))
}

/// As lines of the length that all others have.
fn log_text(text: &str, log: &dyn Log) {
    for line in text.lines() {
        let mut rest = line;
        while rest.len() > LINE_BYTES_MAX {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LINE_BYTES_MAX));
            log.line(Stream::Stdout, piece);
            rest = after;
        }
        log.line(Stream::Stdout, rest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// What a channel has told, one text for each.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Log for Told {
        fn line(&self, stream: Stream, line: &str) {
            self.0.lock().expect("not poisoned").push(format!("{stream:?} {line}"));
        }

        fn progress(&self, fraction: f64, text: &str) {
            self.0.lock().expect("not poisoned").push(format!("{fraction} {text}"));
        }
    }

    fn through(chunks: &[&[u8]], output_bytes_max: u64) -> (Channel, Vec<String>) {
        let (told, mut channel) = (Told::default(), Channel::reading(None, output_bytes_max));
        for chunk in chunks {
            channel.take(chunk, Some(&told));
        }
        channel.close(Some(&told));
        (channel, told.0.into_inner().expect("not poisoned"))
    }

    #[test]
    fn progress_log_and_output_are_told_apart() {
        let text = "{\"progress\":0.4,\"text\":\"reading\"}\n{\"progress\":1}\n\
                    {\"log\":\"one\\ntwo\"}\n\n{\"output\":{\"a\":[1]}}\n{\"progress\":7}";
        let (mut channel, told) = through(&[text.as_bytes()], 100);
        assert_eq!(told, ["0.4 reading", "1 ", "Stdout one", "Stdout two", "1 "]);
        assert_eq!(channel.take_output().as_deref(), Some("{\"a\":[1]}"));
    }

    #[test]
    fn the_last_output_counts_and_a_string_is_its_text() {
        for (text, output) in [
            ("{\"output\":1}\n{\"output\":\"a \\\"b\\\"\"}\n", Some("a \"b\"")),
            ("{\"output\":null}\n", Some("null")),
            ("{\"log\":\"x\"}\n", None),
        ] {
            assert_eq!(through(&[text.as_bytes()], 100).0.take_output().as_deref(), output);
        }
    }

    #[test]
    fn lines_that_are_no_messages_are_counted_and_named_once() {
        let lines = [
            "garbage",
            "{}",
            "7",
            "{\"progress\":\"half\"}",
            "{\"progress\":1,\"log\":\"x\"}",
            "{\"text\":\"x\"}",
            "{\"colour\":1}",
            "\u{1}\u{2}",
        ];
        let (channel, told) = through(&[lines.join("\n").as_bytes()], 100);
        assert_eq!(told, ["Stderr 8 lines on descriptor 3 were no messages to hero"]);
        assert!(!channel.is_too_large());
    }

    #[test]
    fn an_output_beyond_its_bound_is_noticed_and_a_long_line_of_garbage_is_not_kept() {
        let value = "x".repeat(101);
        assert!(through(&[format!("{{\"output\":\"{value}\"}}\n").as_bytes()], 100).0.too_large);
        let endless = vec![b'x'; 200_000];
        let (channel, told) = through(&[&endless, b"\n{\"log\":\"on\"}\n"], 100);
        assert!(!channel.too_large && channel.partial.capacity() < 100_000);
        assert_eq!(told[0], "Stdout on");
        let output = [OUTPUT, b":\"", &endless, b"\"}"].concat();
        assert!(through(&[&output], 100).0.too_large);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same(
            bytes in prop_oneof![
                vec(any::<u8>(), 0..200),
                "(\\{\"(progress|log|output|text)\":(0.5|\"a\"|null)\\}?\n?){0,8}"
                    .prop_map(String::into_bytes),
            ],
            cut in any::<proptest::sample::Index>(),
        ) {
            let at = cut.index(bytes.len() + 1);
            let (mut whole, told_whole) = through(&[&bytes], 20);
            let (mut cut, told_cut) = through(&[&bytes[..at], &bytes[at..]], 20);
            prop_assert_eq!(told_whole, told_cut);
            prop_assert_eq!(whole.take_output(), cut.take_output());
        }
    }
}
