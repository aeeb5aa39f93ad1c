//! The channel of a job's child: a descriptor where it reports progress, log lines and its output.
//! Each line is a JSON object, one of
//!
//! ```json
//! {"progress": 0.4, "text": "reading"}
//! {"log": "a line for the job's log"}
//! {"output": {"any": "value"}}
//! {"retry_in": 300, "text": "the server is busy"}
//! {"discard": "no such customer"}
//! {"wait": {"event": "approved", "for": "3d"}}
//! {"state": {"row": 7}}
//! ```
//!
//! The number of the descriptor is in the environment of the child. The last reported output replaces
//! standard output. `retry_in`, in seconds, `discard` and `wait` decide what the end of the script means: the
//! last of them counts. `state` is a request: its answer stands on the descriptor for answers (`answers.rs`).
//! Other lines are counted, and the count is logged: a child that writes there by accident must not fail.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::answers::AnswerPipe;
use super::lines::LINE_BYTES_MAX;
use super::pipe::Reader;
use crate::engine::process::start::CHANNEL_NUMBER;
use crate::engine::{Answers, Log, RequestKind, ScriptRequest, Stream};
use crate::proto::job::{AskedWait, KeptState};
use crate::proto::json_text::compact;
use crate::proto::text::counted;

/// The bytes of a line beside its output: braces, the name, and escapes of a text; enough for a state as well.
const LINE_EXTRA_BYTES: u64 = 256 * 1024;
/// The start of a line with an output.
const OUTPUT: &[u8] = b"{\"output\"";
/// The start of a line with a state.
const STATE: &[u8] = b"{\"state\"";

/// One message.
#[derive(Debug)]
enum ChannelMessage {
    Progress(f64, String),
    Log(String),
    Output(String),
    RetryIn(f64, String),
    Discard(String),
    Wait(Result<AskedWait, String>),
    State(Result<KeptState, String>),
}

/// The members of a line. An output is kept as it is written, with all digits of its numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Members<'m> {
    progress: Option<f64>,
    text: Option<String>,
    log: Option<String>,
    #[serde(borrow, deserialize_with = "present")]
    output: Option<&'m RawValue>,
    retry_in: Option<f64>,
    discard: Option<String>,
    #[serde(borrow, deserialize_with = "present")]
    state: Option<&'m RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    wait: Option<&'m RawValue>,
}

/// Reads a value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl ChannelMessage {
    /// Reads a line; `None` if it is no message.
    fn read(line: &[u8]) -> Option<Self> {
        let Members { progress, text, log, output, retry_in, discard, state, wait } =
            serde_json::from_slice(line).ok()?;
        if state.is_some() || wait.is_some() {
            let others = [text.is_some(), progress.is_some(), log.is_some(), output.is_some()];
            let is_alone = !others.contains(&true) && retry_in.is_none() && discard.is_none();
            return match (state, wait) {
                (Some(state), None) if is_alone => {
                    Some(Self::State(KeptState::of_json(state.get())))
                }
                (None, Some(wait)) if is_alone => Some(Self::Wait(AskedWait::of_json(wait.get()))),
                _ => None,
            };
        }
        Some(match (progress, log, output, retry_in, discard, &text) {
            (Some(fraction), None, None, None, None, _) => {
                Self::Progress(fraction, text.unwrap_or_default())
            }
            (None, Some(log), None, None, None, None) => Self::Log(log),
            (None, None, Some(output), None, None, None) => Self::Output(text_of(output)?),
            (None, None, None, Some(delay), None, _) => {
                Self::RetryIn(delay, text.unwrap_or_default())
            }
            (None, None, None, None, Some(why), None) => Self::Discard(why),
            _ => return None,
        })
    }
}

/// Returns the text of an output: a string as it is, any other value as JSON.
fn text_of(output: &RawValue) -> Option<String> {
    let json = output.get();
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { compact(json).ok() }
}

/// The meaning of its end, as a script says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedEnd {
    /// It runs again after this time.
    RetryIn(Duration, String),
    /// No further attempt can succeed.
    Discard(String),
    /// It runs again after this wait, or fails as nobody can wait so.
    Wait(Result<AskedWait, String>),
}

/// The reading end, and the bytes read.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) reader: Reader,
    messages: Messages,
}

/// The messages of a child.
#[derive(Debug)]
struct Messages {
    output_bytes_max: u64,
    line_bytes_max: usize,
    partial: Vec<u8>,
    /// True if the current line is too long, and the rest of it is skipped.
    skipping: bool,
    unread_lines: u64,
    output: Option<String>,
    asked: Option<AskedEnd>,
    too_large: bool,
    answers: Option<Arc<AnswerPipe>>,
}

impl Channel {
    /// Reads from a pipe, and answers requests on another.
    ///
    /// # Errors
    /// The errors of setting it up.
    pub(super) fn new(
        read_end: PipeReader,
        answers: PipeWriter,
        output_bytes_max: u64,
    ) -> io::Result<Self> {
        let (reader, mut messages) = (Reader::new(read_end)?, Messages::new(output_bytes_max));
        messages.answers = Some(Arc::new(AnswerPipe::new(answers)?));
        Ok(Self { reader, messages })
    }

    /// True if an output was too large.
    pub(super) fn is_too_large(&self) -> bool {
        self.messages.too_large
    }

    /// Returns the last output, and the meaning that the script gives to its end.
    pub(super) fn into_reported(self) -> (Option<String>, Option<AskedEnd>) {
        (self.messages.output, self.messages.asked)
    }

    /// Reads the bytes that are there, at most a few buffers.
    pub(super) fn read(&mut self, log: Option<&dyn Log>) {
        self.reader.read(|bytes| self.messages.take(bytes, log));
    }

    /// Ends the last line, and logs the number of lines that were not messages.
    pub(super) fn close(&mut self, log: Option<&dyn Log>) {
        self.reader.end = None;
        self.messages.close(log);
    }
}

impl Messages {
    fn new(output_bytes_max: u64) -> Self {
        let line_bytes_max = output_bytes_max.saturating_add(LINE_EXTRA_BYTES);
        Self {
            output_bytes_max,
            line_bytes_max: usize::try_from(line_bytes_max).unwrap_or(usize::MAX),
            partial: Vec::new(),
            skipping: false,
            unread_lines: 0,
            output: None,
            asked: None,
            too_large: false,
            answers: None,
        }
    }

    fn close(&mut self, log: Option<&dyn Log>) {
        self.end_line(log);
        if let Some(log) = log
            && self.unread_lines > 0
        {
            let lines = std::mem::take(&mut self.unread_lines);
            let one = format!("line on descriptor {CHANNEL_NUMBER} was no message to hero");
            let more = format!("lines on descriptor {CHANNEL_NUMBER} were not messages to hero");
            let note = counted(lines, &one, &more);
            log.line(Stream::Stderr, &note);
        }
    }

    fn take(&mut self, bytes: &[u8], log: Option<&dyn Log>) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.append(piece, log);
            if pieces.peek().is_some() {
                self.end_line(log);
            }
        }
    }

    fn append(&mut self, piece: &[u8], log: Option<&dyn Log>) {
        if self.skipping {
            return;
        }
        let room = self.line_bytes_max - self.partial.len();
        self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() <= room {
            return;
        }
        self.too_large |= begins_with(&self.partial, OUTPUT);
        self.skipping = true;
        if begins_with(&self.partial, STATE) {
            self.request(Err(KeptState::too_large()), log);
        } else {
            self.unread_lines += 1;
        }
        self.partial = Vec::new();
    }

    fn end_line(&mut self, log: Option<&dyn Log>) {
        let line = std::mem::take(&mut self.partial);
        if !std::mem::take(&mut self.skipping) && !line.trim_ascii().is_empty() {
            self.apply(&line, log);
        }
    }

    fn apply(&mut self, line: &[u8], log: Option<&dyn Log>) {
        match ChannelMessage::read(line) {
            Some(ChannelMessage::Progress(fraction, text)) => {
                if let Some(log) = log {
                    log.progress(fraction.clamp(0.0, 1.0), &text);
                }
            }
            Some(ChannelMessage::Log(text)) => {
                if let Some(log) = log {
                    log_text(&text, log);
                }
            }
            Some(ChannelMessage::Output(text)) => {
                self.too_large |= text.len() as u64 > self.output_bytes_max;
                self.output = Some(text);
            }
            Some(ChannelMessage::RetryIn(seconds, text)) => {
                let delay = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
                self.asked = Some(AskedEnd::RetryIn(delay, text));
            }
            Some(ChannelMessage::Discard(why)) => self.asked = Some(AskedEnd::Discard(why)),
            Some(ChannelMessage::Wait(wait)) => self.asked = Some(AskedEnd::Wait(wait)),
            Some(ChannelMessage::State(state)) => self.request(state.map(RequestKind::State), log),
            // A script that asks waits for an answer.
            None if begins_with(line, STATE) => {
                self.request(Err("the line is no request of a state".to_owned()), log);
            }
            None => self.unread_lines += 1,
        }
    }
}

/// Returns whether a line begins so; space does not count.
fn begins_with(line: &[u8], begin: &[u8]) -> bool {
    line.iter().filter(|byte| !byte.is_ascii_whitespace()).take(begin.len()).eq(begin)
}

impl Messages {
    fn request(&self, asked: Result<RequestKind, String>, log: Option<&dyn Log>) {
        if let (Some(log), Some(answers)) = (log, &self.answers) {
            log.request(ScriptRequest { asked, answers: Arc::clone(answers) as Arc<dyn Answers> });
        }
    }
}

/// Logs a text as lines of bounded length.
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

    /// Records the logs of a channel.
    #[derive(Default)]
    struct Recorded(Mutex<Vec<String>>);

    impl Log for Recorded {
        fn line(&self, stream: Stream, line: &str) {
            self.0.lock().expect("not poisoned").push(format!("{stream:?} {line}"));
        }

        fn progress(&self, fraction: f64, text: &str) {
            self.0.lock().expect("not poisoned").push(format!("{fraction} {text}"));
        }

        fn request(&self, request: ScriptRequest) {
            let asked = request.asked.map(|RequestKind::State(state)| state.as_str().to_owned());
            self.0.lock().expect("not poisoned").push(format!("{asked:?}"));
        }
    }

    fn through(chunks: &[&[u8]], output_bytes_max: u64) -> (Messages, Vec<String>) {
        let (log, mut messages) = (Recorded::default(), Messages::new(output_bytes_max));
        let (_, answers) = io::pipe().expect("a pipe");
        messages.answers = Some(Arc::new(AnswerPipe::new(answers).expect("set up")));
        for chunk in chunks {
            messages.take(chunk, Some(&log));
        }
        messages.close(Some(&log));
        (messages, log.0.into_inner().expect("not poisoned"))
    }

    #[test]
    fn progress_log_and_output_are_distinguished() {
        let text = "{\"progress\":0.4,\"text\":\"reading\"}\n{\"progress\":1}\n\
                    {\"log\":\"one\\ntwo\"}\n\n{\"output\":{\"a\":[1]}}\n{\"progress\":7}";
        let (messages, logged) = through(&[text.as_bytes()], 100);
        assert_eq!(logged, ["0.4 reading", "1 ", "Stdout one", "Stdout two", "1 "]);
        assert_eq!(messages.output.as_deref(), Some("{\"a\":[1]}"));
    }

    #[test]
    fn last_output_wins_and_a_string_is_its_text() {
        for (text, output) in [
            ("{\"output\":1}\n{\"output\":\"a \\\"b\\\"\"}\n", Some("a \"b\"")),
            ("{\"output\":null}\n", Some("null")),
            (
                "{\"output\": {\"z\": 100000000000000000000, \"a\": 1.0}}\n",
                Some("{\"z\":100000000000000000000,\"a\":1.0}"),
            ),
            ("{\"log\":\"x\"}\n", None),
        ] {
            assert_eq!(through(&[text.as_bytes()], 100).0.output.as_deref(), output);
        }
    }

    #[test]
    fn last_request_for_the_end_counts() {
        let asked = |text: &str| through(&[text.as_bytes()], 100).0.asked;
        let later = |seconds, why: &str| {
            Some(AskedEnd::RetryIn(Duration::from_secs(seconds), why.to_owned()))
        };
        assert_eq!(asked("{\"log\":\"x\"}"), None);
        assert_eq!(asked("{\"retry_in\":300,\"text\":\"busy\"}"), later(300, "busy"));
        assert_eq!(asked("{\"discard\":\"no\"}\n{\"retry_in\":-1}"), later(0, ""));
        let huge = asked("{\"retry_in\":1e300}");
        assert_eq!(huge, Some(AskedEnd::RetryIn(Duration::MAX, String::new())));
        let last = asked("{\"retry_in\":1}\n{\"discard\":\"no\"}");
        assert_eq!(last, Some(AskedEnd::Discard("no".to_owned())));
    }

    #[test]
    fn each_line_that_begins_as_a_state_is_a_request() {
        let large = format!("{{\"state\":\"{}\"}}", "x".repeat(400_000));
        let lines = [
            "{\"state\":{\"row\":1.0}}",
            "{ \"state\" : null}",
            "{\"state\":1,\"log\":\"x\"}",
            "{\"state\":1,\"id\":\"other\"}",
            "{\"state\":",
            &large,
        ];
        let (_, logged) = through(&[lines.join("\n").as_bytes()], 100);
        assert_eq!(logged[..2], ["Ok(\"{\\\"row\\\":1.0}\")", "Ok(\"\")"]);
        assert_eq!(logged[2..5], ["Err(\"the line is no request of a state\")"; 3]);
        assert_eq!(logged[5..], [format!("{:?}", Err::<(), _>(KeptState::too_large()))]);
    }

    #[test]
    fn lines_that_are_not_messages_are_counted_and_logged_once() {
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
        let (messages, logged) = through(&[lines.join("\n").as_bytes()], 100);
        assert_eq!(logged, ["Stderr 8 lines on descriptor 3 were not messages to hero"]);
        assert!(!messages.too_large);
    }

    #[test]
    fn output_over_its_bound_is_noticed_and_a_long_line_of_garbage_is_dropped() {
        let value = "x".repeat(101);
        assert!(through(&[format!("{{\"output\":\"{value}\"}}\n").as_bytes()], 100).0.too_large);
        let endless = vec![b'x'; 500_000];
        let (messages, logged) = through(&[&endless, b"\n{\"log\":\"on\"}\n"], 100);
        assert!(!messages.too_large && messages.partial.capacity() < 400_000);
        assert_eq!(logged[0], "Stdout on");
        let output = [OUTPUT, b":\"", &endless, b"\"}"].concat();
        assert!(through(&[&output], 100).0.too_large);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_messages(
            bytes in prop_oneof![
                vec(any::<u8>(), 0..200),
                "(\\{\"(progress|log|output|text|retry_in|discard)\":(0.5|\"a\"|null)\\}?\n?){0,8}"
                    .prop_map(String::into_bytes),
            ],
            cut in any::<proptest::sample::Index>(),
        ) {
            let at = cut.index(bytes.len() + 1);
            let (whole, logged_whole) = through(&[&bytes], 20);
            let (cut, logged_cut) = through(&[&bytes[..at], &bytes[at..]], 20);
            prop_assert_eq!(logged_whole, logged_cut);
            prop_assert_eq!((whole.output, whole.asked), (cut.output, cut.asked));
        }
    }
}
