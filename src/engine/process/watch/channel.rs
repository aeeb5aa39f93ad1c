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
//! {"submit": {"type": "python", "script": "print(1)"}}
//! {"inputs": "page-7"}
//! {"next": {"exit": 0, "output": "aGkK"}}
//! ```
//!
//! The number of the descriptor is in the environment of the child. The last reported output replaces
//! standard output. `retry_in`, in seconds, `discard` and `wait` decide what the end of the script means: the
//! last of them counts. `state`, `submit`, `inputs` and `next` are requests: their answers stand on the descriptor for
//! answers (`answers.rs`). `next` tells what became of a call of a session, with the output reported since, and
//! asks for the next call.
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
use crate::proto::job::{AskedCall, AskedOutput, AskedWait, KeptState, NewChildren};
use crate::proto::json_text::compact;
use crate::proto::text::counted;

/// The bytes of a line beside its output: braces, the name, and escapes of a text; enough for a state as well.
const LINE_EXTRA_BYTES: u64 = 256 * 1024;
/// The start of a line with an output.
const OUTPUT: &[u8] = b"{\"output\"";
/// The start of a line with a state.
const STATE: &[u8] = b"{\"state\"";
/// The start of a line with jobs to submit.
const SUBMIT: &[u8] = b"{\"submit\"";
/// The start of a line with a wait.
const WAIT: &[u8] = b"{\"wait\"";
/// The start of a line that asks for an output.
const INPUTS: &[u8] = b"{\"inputs\"";
/// The start of a line that asks for the next call.
const NEXT: &[u8] = b"{\"next\"";

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
    Submit(Result<NewChildren, String>),
    Inputs(Result<AskedOutput, String>),
    /// As it is written: the output before it belongs to it.
    Next(String),
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
    submit: Option<&'m RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    wait: Option<&'m RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    inputs: Option<&'m RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    next: Option<&'m RawValue>,
}

/// Reads a value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl ChannelMessage {
    /// Reads a line; `None` if it is no message.
    fn read(line: &[u8]) -> Option<Self> {
        let Members {
            progress,
            text,
            log,
            output,
            retry_in,
            discard,
            state,
            submit,
            wait,
            inputs,
            next,
        } = serde_json::from_slice(line).ok()?;
        if [state, submit, wait, inputs, next].iter().any(Option::is_some) {
            let others = [text.is_some(), progress.is_some(), log.is_some(), output.is_some()];
            let is_alone = !others.contains(&true) && retry_in.is_none() && discard.is_none();
            return match (state, submit, wait, inputs, next) {
                (Some(state), None, None, None, None) if is_alone => {
                    Some(Self::State(KeptState::of_json(state.get())))
                }
                (None, Some(jobs), None, None, None) if is_alone => {
                    Some(Self::Submit(NewChildren::of_json(jobs.get())))
                }
                (None, None, Some(wait), None, None) if is_alone => {
                    Some(Self::Wait(AskedWait::of_json(wait.get())))
                }
                (None, None, None, Some(asked), None) if is_alone => {
                    Some(Self::Inputs(AskedOutput::of_json(asked.get())))
                }
                (None, None, None, None, Some(next)) if is_alone => {
                    Some(Self::Next(next.get().to_owned()))
                }
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
        } else if begins_with(&self.partial, SUBMIT) {
            self.request(Err(NewChildren::too_large()), log);
        } else if begins_with(&self.partial, WAIT) {
            self.asked = Some(AskedEnd::Wait(Err("wait: the line is too long".to_owned())));
        } else if begins_with(&self.partial, INPUTS) {
            self.request(Err("the request is too long".to_owned()), log);
        } else if begins_with(&self.partial, NEXT) {
            self.request(Err(AskedCall::too_large()), log);
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
            Some(ChannelMessage::Submit(new)) => self.request(new.map(RequestKind::Submit), log),
            Some(ChannelMessage::Inputs(asked)) => {
                self.request(asked.map(RequestKind::Inputs), log);
            }
            Some(ChannelMessage::Next(said)) => self.next(&said, log),
            // A script that asks waits for an answer.
            None if begins_with(line, STATE) => {
                self.request(Err("the line is no request of a state".to_owned()), log);
            }
            None if begins_with(line, SUBMIT) => {
                self.request(Err("the line is no request to submit jobs".to_owned()), log);
            }
            // A script that means to wait must not finish.
            None if begins_with(line, WAIT) => {
                self.asked = Some(AskedEnd::Wait(Err("the line is no wait".to_owned())));
            }
            None if begins_with(line, INPUTS) => {
                self.request(Err("the line is no request for an output".to_owned()), log);
            }
            None if begins_with(line, NEXT) => {
                self.request(Err("the line is no request for a call".to_owned()), log);
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
    /// Asks for the next call. What was said before it about the output and the end was said by the call before.
    fn next(&mut self, said: &str, log: Option<&dyn Log>) {
        let result = self.output.take();
        self.asked = None;
        self.request(AskedCall::of_json(said, result).map(RequestKind::Next), log);
    }

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
mod tests;
