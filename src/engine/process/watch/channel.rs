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
//! Halves of surrogate pairs and bytes that are not UTF-8 become U+FFFD. A line that begins as `output`, `retry_in`
//! or `discard` and cannot be read fails the attempt, as its message would be lost.
//! Other lines are counted, and the count is logged with the first of them: a child that writes there by accident must
//! not fail.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::answers::AnswerPipe;
use super::lines::LINE_BYTES_MAX;
use super::pipe::Reader;
use crate::engine::process::start::CHANNEL_NUMBER;
use crate::engine::{Answers, Failure, Log, RequestKind, ScriptRequest, Stream};
use crate::proto::job::{AskedCall, AskedOutput, AskedWait, Checkpoint, NewChildren};
use crate::proto::json_text::{compact, readable};
use crate::proto::text::{counted, shown};

/// The bytes of a line beside its output: braces, the name, and escapes of a text; enough for a state as well.
const LINE_EXTRA_BYTES: u64 = 256 * 1024;
const SHOWN_BYTES_MAX: usize = 400;
/// A thing that a line of one member asks for.
#[derive(Debug, Clone, Copy)]
enum ChannelAsk {
    State,
    Submit,
    Inputs,
    Next,
    Wait,
}

/// The members of lines that ask, and the answer to one that begins so and is in no form. A script that asks
/// waits for an answer, and one that means to wait must not finish.
const ASKS: [(&str, ChannelAsk, &str); 5] = [
    ("state", ChannelAsk::State, "the line is no request of a state"),
    ("submit", ChannelAsk::Submit, "the line is no request to submit jobs"),
    ("inputs", ChannelAsk::Inputs, "the line is no request for an output"),
    ("next", ChannelAsk::Next, "the line is no request for a call"),
    ("wait", ChannelAsk::Wait, "the line is no wait"),
];

/// The other members that decide what becomes of the job: a script that means to set one must not finish without it.
const DECISIONS: [&str; 3] = ["output", "retry_in", "discard"];

impl ChannelAsk {
    fn too_large(self) -> String {
        match self {
            Self::State => Checkpoint::too_large(),
            Self::Submit => NewChildren::too_large(),
            Self::Inputs => "the request is too long".to_owned(),
            Self::Next => AskedCall::too_large(),
            Self::Wait => "wait: the line is too long".to_owned(),
        }
    }
}

/// The members of another line. An output is kept as it is written, with all digits of its numbers.
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
}

/// Reads a value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'m> Members<'m> {
    /// Reads a line; `None` if it is no message.
    fn read(line: &'m [u8]) -> Option<Self> {
        let members: Self = serde_json::from_slice(line).ok()?;
        let Self { progress, text, log, output, retry_in, discard } = &members;
        let (has_progress, is_later) = (progress.is_some(), retry_in.is_some());
        let all = [has_progress, log.is_some(), output.is_some(), is_later, discard.is_some()];
        let is_one = all.into_iter().filter(|is_there| *is_there).count() == 1;
        (is_one && (text.is_none() || has_progress || is_later)).then_some(members)
    }
}

/// Returns the text of an output: a string as it is, any other value as JSON.
fn text_of(output: &RawValue) -> Option<String> {
    let json = output.get();
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { compact(json).ok() }
}

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) reader: Reader,
    messages: Messages,
}

#[derive(Debug, Default)]
struct Messages {
    output_bytes_max: u64,
    line_bytes_max: usize,
    partial: Vec<u8>,
    /// True if the current line is too long, and the rest of it is skipped.
    skipping: bool,
    unread_lines: u64,
    first_unread: String,
    output: Option<String>,
    /// The failure that the script gives its end the meaning of.
    asked: Option<Failure>,
    /// The first line that decides about the job and cannot be read, with the reason.
    unreadable: Option<String>,
    too_large: bool,
    answers: Option<Arc<AnswerPipe>>,
}

impl Channel {
    pub(super) fn new(
        read_end: PipeReader,
        answers: PipeWriter,
        output_bytes_max: u64,
    ) -> io::Result<Self> {
        let (reader, mut messages) = (Reader::new(read_end)?, Messages::new(output_bytes_max));
        messages.answers = Some(Arc::new(AnswerPipe::new(answers)?));
        Ok(Self { reader, messages })
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.messages.too_large
    }

    /// Returns the last output, and the meaning that the script gives to its end.
    pub(super) fn into_reported(self) -> (Option<String>, Option<Failure>) {
        let Messages { output, asked, unreadable, .. } = self.messages;
        (output, unreadable.map(Failure::script).or(asked))
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
            ..Self::default()
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
            let (note, first) =
                (counted(lines, &one, &more), std::mem::take(&mut self.first_unread));
            log.line(Stream::Stderr, &format!("{note}, first `{first}`: see hero exec --help"));
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
        let line = std::mem::take(&mut self.partial);
        self.too_large |= first_name(&line) == Some("output");
        self.skipping = true;
        match ask_of(&line) {
            Some((_, ask, _)) => self.ask(*ask, Err(ask.too_large()), log),
            None => self.unread(&line, "it is too long"),
        }
    }

    fn end_line(&mut self, log: Option<&dyn Log>) {
        let line = std::mem::take(&mut self.partial);
        if !std::mem::take(&mut self.skipping) && !line.trim_ascii().is_empty() {
            self.apply(readable(&line).as_bytes(), log);
        }
    }

    fn apply(&mut self, line: &[u8], log: Option<&dyn Log>) {
        if let Some((name, ask, malformed)) = ask_of(line) {
            let members = serde_json::from_slice::<BTreeMap<&str, &RawValue>>(line);
            let only = members.ok().filter(|members| members.len() == 1);
            let json = only.and_then(|members| members.get(name).copied().map(RawValue::get));
            self.ask(*ask, json.ok_or_else(|| (*malformed).to_owned()), log);
        } else if self.tell(line, log).is_none() {
            let why = serde_json::from_slice::<&RawValue>(line).err();
            let why = why.map_or("it is in no known form".to_owned(), |why| {
                format!("it is not JSON: {why}")
            });
            self.unread(line, &why);
        }
    }

    /// Takes a message that has no answer; `None` if it is none.
    fn tell(&mut self, line: &[u8], log: Option<&dyn Log>) -> Option<()> {
        let members = Members::read(line)?;
        if let Some(output) = members.output {
            let text = text_of(output)?;
            self.too_large |= text.len() as u64 > self.output_bytes_max;
            self.output = Some(text);
        }
        if let (Some(text), Some(log)) = (members.log, log) {
            log_text(&text, log);
        }
        let text = members.text.unwrap_or_default();
        if let (Some(fraction), Some(log)) = (members.progress, log) {
            log.progress(fraction.clamp(0.0, 1.0), &text);
        }
        if let Some(seconds) = members.retry_in {
            let delay = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            self.asked = Some(Failure::postponed(Some(delay), text, None));
        }
        if let Some(why) = members.discard {
            self.asked = Some(Failure::discarded(why, None));
        }
        Some(())
    }

    /// Takes what a line asks for, as JSON, or why it cannot be done.
    fn ask(&mut self, ask: ChannelAsk, json: Result<&str, String>, log: Option<&dyn Log>) {
        let asked = match ask {
            ChannelAsk::State => json.and_then(Checkpoint::of_json).map(RequestKind::State),
            ChannelAsk::Submit => json.and_then(NewChildren::of_json).map(RequestKind::Submit),
            ChannelAsk::Inputs => json.and_then(AskedOutput::of_json).map(RequestKind::Inputs),
            // What was said before it about the output and the end was said by the call before.
            ChannelAsk::Next => json
                .and_then(|said| {
                    self.asked = None;
                    AskedCall::of_json(said, self.output.take())
                })
                .map(RequestKind::Next),
            ChannelAsk::Wait => {
                let wait = json.and_then(AskedWait::of_json);
                self.asked = Some(match wait {
                    Ok(wait) => Failure::Waits { wait: Box::new(wait), exit_code: None },
                    // Nobody can wait so.
                    Err(why) => Failure::script(why),
                });
                return;
            }
        };
        if let (Some(log), Some(answers)) = (log, &self.answers) {
            log.request(ScriptRequest { asked, answers: Arc::clone(answers) as Arc<dyn Answers> });
        }
    }

    /// Counts a line that is no message, and fails the attempt if it was to decide about the job.
    fn unread(&mut self, line: &[u8], why: &str) {
        let begin = &line[..line.len().min(SHOWN_BYTES_MAX)];
        let begin = || shown(&String::from_utf8_lossy(begin));
        if self.unread_lines == 0 {
            self.first_unread = begin();
        }
        self.unread_lines += 1;
        if let Some(name) = first_name(line).filter(|name| DECISIONS.contains(name)) {
            let message =
                || format!("cannot read the line for `{name}` on HERO_FD: {why}: `{}`", begin());
            self.unreadable.get_or_insert_with(message);
        }
    }
}

fn first_name(line: &[u8]) -> Option<&str> {
    let members = line.trim_ascii_start().strip_prefix(b"{")?;
    let name = members.trim_ascii_start().strip_prefix(b"\"")?;
    std::str::from_utf8(&name[..name.iter().position(|byte| *byte == b'"')?]).ok()
}

fn ask_of(line: &[u8]) -> Option<&'static (&'static str, ChannelAsk, &'static str)> {
    let name = first_name(line)?;
    ASKS.iter().find(|(known, ..)| *known == name)
}

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
