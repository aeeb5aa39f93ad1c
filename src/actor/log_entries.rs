//! The entries of the log of a running job that are not written yet, and the end of a log that is too
//! large. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use super::log_unfinished::UnfinishedLine;
use crate::engine::{Stream, Usage};
use crate::proto::job::{FILES_NOT_KEPT, NamedFiles};
use crate::proto::text::counted;
use crate::store::LogEntry;

/// The cost of a line beside its text, which bounds empty lines too.
pub(super) const LINE_OVERHEAD_BYTES: u64 = 16;
/// The maximum number of lines of a log before its end, and of its end: fewer than Redis keeps of one log.
pub(super) const LINES_MAX: u64 = 80_000;
const END_LINES_MAX: usize = 10_000;

/// The lines of the output in the log.
#[derive(Debug, Default)]
pub(super) struct LiveOutput {
    /// Lines that wait until the job has run for a while.
    pub(super) held: Vec<LogEntry>,
    pub(super) held_bytes: u64,
    /// Some lines are in the log.
    pub(super) is_released: bool,
    pub(super) bytes: u64,
    pub(super) lines: u64,
    /// The output has used up its share of the log, or is binary.
    pub(super) ended: bool,
}

/// The last lines of a log that is too large.
#[derive(Debug, Default)]
pub(super) struct LogEnd {
    lines: VecDeque<(u8, String)>,
    bytes: u64,
    /// The lines before them that are not in the log.
    missing: u64,
}

impl LogEnd {
    /// Adds a line, and drops the first ones beyond `bytes_max` bytes. Returns whether these are the first
    /// that are missing.
    pub(super) fn push(&mut self, fd: u8, line: String, bytes_max: u64) -> bool {
        let was_whole = self.missing == 0;
        self.bytes += line.len() as u64 + LINE_OVERHEAD_BYTES;
        self.lines.push_back((fd, line));
        while (self.bytes > bytes_max || self.lines.len() > END_LINES_MAX)
            && let Some((_, first)) = self.lines.pop_front()
        {
            self.bytes -= first.len() as u64 + LINE_OVERHEAD_BYTES;
            self.missing += 1;
        }
        was_whole && self.missing > 0
    }

    /// Takes the lines with their streams, after a mark if some before them are missing.
    pub(super) fn take(&mut self) -> Vec<(u8, String)> {
        let Self { lines, missing, .. } = std::mem::take(self);
        let more = counted(missing, "line is missing here", "lines are missing here");
        let mark = (missing > 0).then_some((2, more));
        mark.into_iter().chain(lines).collect()
    }
}

/// The lines, progress, usage and files of a job, until they are written.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) waiting: Vec<LogEntry>,
    pub(super) size_bytes: u64,
    pub(super) lines: u64,
    pub(super) full: bool,
    pub(super) end: LogEnd,
    /// The bytes of the output in the log file.
    pub(super) output_bytes: u64,
    pub(super) live: LiveOutput,
    /// The bytes that were cut off at the start of the output.
    pub(super) output_truncated: u64,
    pub(super) files: NamedFiles,
    /// The files that it left and that are not kept, with the reasons.
    pub(super) files_not_kept: String,
    /// The latest progress, until it is taken.
    pub(super) progress: Option<LogEntry>,
    /// The earliest time of the next write of progress.
    pub(super) progress_at: Option<Instant>,
    /// The text after the last line.
    pub(super) unfinished: UnfinishedLine,
    pub(super) used: Option<Usage>,
    /// Lines that Redis refused.
    pub(super) missing: u64,
    /// Some of them are not marked in the log yet.
    pub(super) unmarked: bool,
}

impl Entries {
    /// Lets the held lines of the output into the log.
    pub(super) fn release(&mut self) {
        self.live.is_released |= !self.live.held.is_empty();
        self.live.held_bytes = 0;
        self.waiting.append(&mut self.live.held);
    }

    /// Returns the resources that the job's process used, as fields of its hash; none if it had no
    /// process.
    pub(super) fn used_fields(&self) -> Vec<(&'static str, String)> {
        let truncated = (self.output_truncated > 0)
            .then(|| ("output_truncated", self.output_truncated.to_string()));
        let not_kept = (!self.files_not_kept.is_empty())
            .then(|| (FILES_NOT_KEPT, self.files_not_kept.clone()));
        let further = truncated.into_iter().chain(not_kept);
        let Some(used) = self.used else { return further.collect() };
        let mut fields = vec![("cpu_time", format!("{:.3}", used.cpu.as_secs_f64()))];
        let memory = Some(used.memory_bytes).filter(|bytes| *bytes > 0);
        fields.extend(memory.map(|bytes| ("memory_peak", bytes.to_string())));
        fields.extend(used.signal.map(|signal| ("signal", signal.to_string())));
        fields.extend(used.limit.map(|limit| ("limit", limit.as_str().to_owned())));
        fields.extend(further);
        fields
    }

    /// Takes the lines, after a mark if some before them are missing.
    pub(super) fn take(&mut self) -> Vec<LogEntry> {
        let mut entries = std::mem::take(&mut self.waiting);
        if !entries.is_empty() && std::mem::take(&mut self.unmarked) {
            entries.insert(0, LogEntry::Missing { lines: self.missing });
        }
        entries
    }
}

pub(super) fn number_of(stream: Stream) -> u8 {
    match stream {
        Stream::Stdout => 1,
        Stream::Stderr => 2,
    }
}

pub(super) fn own_line(line: &str) -> LogEntry {
    LogEntry::Line { fd: 2, line: line.to_owned(), output: false }
}
