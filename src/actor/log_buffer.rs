//! The log of one running job, kept until the fetch loop writes it to Redis. Scripts never wait
//! for it: of a log beyond the job's share the start and the end are kept, with a mark between them. No
//! lock is held while anything is written.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;

use super::log_entries::{Entries, LINE_OVERHEAD_BYTES, LINES_MAX, number_of, own_line};
use super::log_writer::LogFile;
use super::requests::Requests;
use super::secrets::Secrets;
use crate::engine::{Log, ScriptRequest, Stream, Usage};
use crate::proto::job::{JobId, NamedFiles, TraceParent};
use crate::store::LogEntry;

/// The output of a running job goes to its log after this time. A shorter job costs nothing: its
/// output says all.
const LIVE_AFTER: Duration = Duration::from_secs(1);
/// The part of a log that the output may take.
const OUTPUT_SHARE: u64 = 2;
/// The part of a log that its end may take, once it is too large.
const END_SHARE: u64 = 4;
/// The maximum number of bytes of output that a line of standard error takes along into the log of a short job.
const ORDERED_BYTES_MAX: u64 = 16 * 1024;
/// The longest text that goes with progress, in characters.
const PROGRESS_TEXT_CHARS_MAX: usize = 200;
/// The shortest time between two writes of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// The same as a part of the time that the job has run: a job of a day need not report four times a
/// second, which would push its lines out of the log.
const PROGRESS_PER_RUN: u32 = 200;

/// The log of one running job, bounded by the bytes that the job may log in all.
#[derive(Debug)]
pub(super) struct LogBuffer {
    lines: Mutex<Entries>,
    size_max_bytes: u64,
    written: Arc<Notify>,
    started: Instant,
    /// The job and its trace, if its lines go to the daemon's own log as well.
    pub(super) to_journal: Option<(JobId, Option<TraceParent>)>,
    file: OnceLock<Arc<LogFile>>,
    /// The hidden values; those that the job asks for once they were read.
    pub(super) secrets: RwLock<Secrets>,
    /// The output goes to the log while the job runs.
    pub(super) is_live: bool,
    pub(super) requests: Requests,
}

impl LogBuffer {
    /// Creates an empty log. `written` is notified whenever it stops being empty.
    pub(super) fn new(size_max_bytes: u64, written: Arc<Notify>) -> Self {
        Self {
            lines: Mutex::default(),
            size_max_bytes,
            written,
            started: Instant::now(),
            to_journal: None,
            file: OnceLock::new(),
            secrets: RwLock::default(),
            is_live: false,
            requests: Requests::default(),
        }
    }

    pub(super) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.read().hide(text)
    }

    /// Returns a text whose rest is not there yet, without hidden values and the start of one at its end.
    fn hide_unfinished(&self, text: &str) -> String {
        let shown = self.hide(text);
        let hidden = self.secrets.read().begin_at_end_of(&shown);
        shown[..shown.len() - hidden].to_owned()
    }

    pub(super) fn also_into(&self, file: Arc<LogFile>) {
        let _ = self.file.set(file);
    }

    /// Ends the log and its file, if there is one: the end of a log that is too large is added.
    pub(super) fn close(&self) -> Result<(), String> {
        let mut inner = self.lines.lock();
        for (fd, line) in inner.end.take() {
            if let Some(file) = self.file.get() {
                file.append(&line);
            }
            inner.waiting.push(LogEntry::Line { fd, line, output: false });
        }
        drop(inner);
        self.file.get().map_or(Ok(()), |file| file.close())
    }

    /// Adds a line of Hero's own, even to a full log.
    pub(super) fn mark(&self, line: &str) {
        self.lines.lock().waiting.push(own_line(line));
        self.written.notify_one();
    }

    /// Takes the entries that are due. Returns with them when later progress becomes due.
    pub(super) fn take(&self, now: Instant) -> (Vec<LogEntry>, Option<Instant>) {
        let mut inner = self.lines.lock();
        let live_at = self.started + LIVE_AFTER;
        if now >= live_at {
            inner.release();
        }
        let live_at = Some(live_at).filter(|_| !inner.live.held.is_empty());
        let progress_at = inner.progress_at.filter(|at| inner.progress.is_some() && now < *at);
        let mut entries = inner.take();
        let hide = |text: &str| self.hide_unfinished(text);
        let started = self.started + LIVE_AFTER;
        let unfinished_at = inner.unfinished.add_to(&mut entries, now, started, hide);
        let later = progress_at.into_iter().chain(live_at).chain(unfinished_at).min();
        if progress_at.is_none()
            && let Some(progress) = inner.progress.take()
        {
            entries.push(progress);
            let ran = now.saturating_duration_since(self.started);
            inner.progress_at = Some(now + PROGRESS_EVERY.max(ran / PROGRESS_PER_RUN));
        }
        (entries, later)
    }

    /// Takes all entries, at the end of the job.
    pub(super) fn take_rest(&self) -> Vec<LogEntry> {
        let mut inner = self.lines.lock();
        if self.started.elapsed() >= LIVE_AFTER || inner.live.is_released {
            inner.release();
        }
        let progress = inner.progress.take();
        let mut entries = inner.take();
        inner.unfinished.end(&mut entries);
        entries.extend(progress);
        entries
    }

    /// Returns its entries, which must not be held while anything is written.
    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.lines.lock()
    }

    /// Puts back entries that could not be written, before those that came since.
    pub(super) fn put_back(&self, mut entries: Vec<LogEntry>) {
        let mut inner = self.lines.lock();
        entries.append(&mut inner.waiting);
        inner.waiting = entries;
    }

    /// Counts lines that Redis refused; the next lines follow a mark.
    pub(super) fn refused(&self, lines: u64) {
        let mut inner = self.lines.lock();
        inner.missing += lines;
        inner.unmarked |= inner.missing > 0;
    }

    /// Adds a line, also to the log file if `into_file`.
    fn add(&self, fd: u8, line: &str, into_file: bool) {
        let line = self.hide(line);
        let end_max = self.size_max_bytes / END_SHARE;
        let mut inner = self.lines.lock();
        if inner.full {
            return self.add_to_end(inner, fd, line.into_owned());
        }
        let was_empty = inner.waiting.is_empty();
        // In the order of their arrival, at a bounded cost.
        if inner.live.held_bytes <= ORDERED_BYTES_MAX {
            inner.release();
        }
        inner.size_bytes += line.len() as u64 + LINE_OVERHEAD_BYTES;
        inner.lines += 1;
        inner.full = inner.size_bytes > self.size_max_bytes - end_max || inner.lines > LINES_MAX;
        if inner.full {
            return self.add_to_end(inner, fd, line.into_owned());
        }
        if let Some(file) = self.file.get().filter(|_| into_file) {
            file.append(&line);
        }
        inner.waiting.push(LogEntry::Line { fd, line: line.clone().into_owned(), output: false });
        drop(inner);
        if let Some((id, trace)) = &self.to_journal {
            tracing::info!(job_id = %id, trace_id = trace.map(|of| of.trace_id()), fd, "{line}");
        }
        self.notify_if(was_empty);
    }

    fn notify_if(&self, was_empty: bool) {
        if was_empty {
            self.written.notify_one();
        }
    }

    /// Keeps a line of a full log for its end, with a mark in the log before the first lost line.
    fn add_to_end(&self, mut inner: MutexGuard<'_, Entries>, fd: u8, line: String) {
        if inner.end.push(fd, line, self.size_max_bytes / END_SHARE) {
            let max = self.size_max_bytes;
            inner.waiting.push(own_line(&format!(
                "log cut here: more than {max} bytes or {LINES_MAX} lines; its end follows when the job ends"
            )));
            drop(inner);
            self.written.notify_one();
        }
    }

    /// Adds a line of the output to the log, at once or after [`LIVE_AFTER`].
    fn add_output(&self, line: &str) {
        let mut inner = self.lines.lock();
        if inner.live.ended || inner.full {
            return;
        }
        let bytes = line.len() as u64 + LINE_OVERHEAD_BYTES;
        let (bytes_max, lines_max) = (self.size_max_bytes / OUTPUT_SHARE, LINES_MAX / OUTPUT_SHARE);
        let entry = if line.contains('\0') {
            inner.live.ended = true;
            LogEntry::output("[hero: the output is binary: no more of it is logged]")
        } else if inner.live.bytes + bytes > bytes_max || inner.live.lines >= lines_max {
            inner.live.ended = true;
            LogEntry::output(format!(
                "[hero: more than {bytes_max} bytes or {lines_max} lines of output: no more is logged]"
            ))
        } else {
            LogEntry::output(self.hide(line))
        };
        inner.live.bytes += bytes;
        inner.live.held_bytes += bytes;
        inner.live.lines += 1;
        inner.size_bytes += bytes;
        inner.lines += 1;
        let was_empty = inner.waiting.is_empty() && inner.live.held.is_empty();
        inner.live.held.push(entry);
        drop(inner);
        self.notify_if(was_empty);
    }
}

impl Log for LogBuffer {
    fn line(&self, stream: Stream, line: &str) {
        self.add(number_of(stream), line, true);
    }

    fn remark(&self, line: &str) {
        if self.lines.lock().full {
            self.mark(&self.hide(line));
        } else {
            self.add(2, line, true);
        }
    }

    fn unfinished(&self, stream: Stream, text: &str) {
        let fd = number_of(stream);
        let mut inner = self.lines.lock();
        let is_shown = fd == 2 || (self.is_live && !inner.live.ended);
        if inner.unfinished.set(fd, if is_shown { text } else { "" }, Instant::now()) {
            self.written.notify_one();
        }
    }

    fn wants_output(&self) -> bool {
        self.is_live || self.file.get().is_some()
    }

    fn output(&self, line: &str) {
        if self.is_live {
            self.add_output(line);
        }
        let Some(file) = self.file.get() else { return };
        let mut inner = self.lines.lock();
        if inner.output_bytes > self.size_max_bytes {
            return;
        }
        inner.output_bytes += line.len() as u64 + LINE_OVERHEAD_BYTES;
        if inner.output_bytes > self.size_max_bytes {
            file.append(&format!("output cut off here: more than {} bytes", self.size_max_bytes));
        } else {
            file.append(&self.hide(line));
        }
    }

    fn output_again(&self, line: &str) {
        let mut inner = self.lines.lock();
        if self.is_live && self.started.elapsed() >= LIVE_AFTER && !inner.live.ended {
            inner.release();
        }
        if inner.live.is_released && !inner.live.ended {
            inner.release();
        }
        inner.live.held.clear();
        if inner.live.is_released && !inner.live.ended {
            return;
        }
        if !inner.live.is_released {
            inner.size_bytes -= std::mem::take(&mut inner.live.bytes);
            inner.lines -= std::mem::take(&mut inner.live.lines);
        }
        drop(inner);
        self.add(1, line, self.file.get().is_none());
    }

    fn files(&self, files: NamedFiles, not_kept: &str) {
        let not_kept = self.hide(not_kept).into_owned();
        let mut inner = self.lines.lock();
        inner.files = files;
        inner.files_not_kept = not_kept;
    }

    fn output_truncated(&self, bytes: u64) {
        self.lines.lock().output_truncated = bytes;
    }

    fn used(&self, usage: &Usage) {
        self.lines.lock().used = Some(*usage);
    }

    fn progress(&self, fraction: f64, text: &str) {
        let text = self.hide(text);
        let text: String = text.chars().take(PROGRESS_TEXT_CHARS_MAX).collect();
        let entry = LogEntry::Progress { fraction, text };
        let was_empty = self.lines.lock().progress.replace(entry).is_none();
        if was_empty {
            self.written.notify_one();
        }
    }

    fn request(&self, request: ScriptRequest) {
        self.requests.add(request, |text| self.hide(text).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fd: u8, line: &str) -> LogEntry {
        LogEntry::Line { fd, line: line.to_owned(), output: false }
    }

    fn progress(fraction: f64) -> LogEntry {
        LogEntry::Progress { fraction, text: "at it".to_owned() }
    }

    #[test]
    fn log_beyond_its_share_keeps_its_begin_and_its_end_with_marks_between_them() {
        let log = LogBuffer::new(200, Arc::default());
        for number in 0..1000 {
            log.line(Stream::Stdout, &format!("line {number:05}"));
        }
        let live = log.take(Instant::now()).0;
        assert_eq!(live[..2], [line(1, "line 00000"), line(1, "line 00001")]);
        let LogEntry::Line { line: mark, .. } = &live[5] else { panic!("no line") };
        assert!(mark.starts_with("log cut here: more than 200 bytes"), "{mark}");
        assert_eq!(live.len(), 6);
        assert_eq!(log.close(), Ok(()));
        assert_eq!(log.take_rest(), [line(2, "994 lines are missing here"), line(1, "line 00999")]);
    }

    #[test]
    fn log_of_very_many_lines_keeps_its_begin_and_its_end() {
        let log = LogBuffer::new(1 << 40, Arc::default());
        for number in 0..200_000 {
            log.line(Stream::Stderr, &number.to_string());
        }
        assert_eq!(log.close(), Ok(()));
        let lines = log.take_rest();
        assert!(lines.len() < 100_000, "{}", lines.len());
        assert_eq!((&lines[0], lines.last()), (&line(2, "0"), Some(&line(2, "199999"))));
        let missing = line(2, "110000 lines are missing here");
        assert_eq!(lines.iter().filter(|entry| **entry == missing).count(), 1);
    }

    #[test]
    fn lines_put_back_come_before_later_ones() {
        let log = LogBuffer::new(1000, Arc::default());
        log.line(Stream::Stdout, "a");
        let taken = log.take_rest();
        log.line(Stream::Stderr, "b");
        log.put_back(taken);
        assert_eq!(log.take_rest(), [line(1, "a"), line(2, "b")]);
    }

    #[test]
    fn lines_that_redis_refused_are_marked_with_their_count_before_the_next_line() {
        let log = LogBuffer::new(1000, Arc::default());
        log.refused(2);
        assert!(log.take_rest().is_empty(), "a mark waits for a line");
        log.line(Stream::Stdout, "a");
        assert_eq!(log.take_rest(), [LogEntry::Missing { lines: 2 }, line(1, "a")]);
        log.refused(1);
        log.line(Stream::Stdout, "b");
        assert_eq!(log.take_rest(), [LogEntry::Missing { lines: 3 }, line(1, "b")]);
        log.line(Stream::Stdout, "c");
        assert_eq!(log.take_rest(), [line(1, "c")]);
    }

    #[test]
    fn only_the_latest_progress_is_taken_at_a_bounded_rate() {
        let log = LogBuffer::new(1000, Arc::default());
        let now = log.started;
        for n in 1..100_u8 {
            log.progress(f64::from(n) / 100.0, "at it");
        }
        assert_eq!(log.take(now), (vec![progress(0.99)], None));
        log.progress(1.0, "at it");
        log.line(Stream::Stdout, "a");
        let soon = now + PROGRESS_EVERY;
        assert_eq!(log.take(now), (vec![line(1, "a")], Some(soon)), "lines are due at once");
        assert_eq!(log.take(soon), (vec![progress(1.0)], None));
        assert_eq!(log.take(soon), (Vec::new(), None), "nothing is taken twice");
    }

    #[test]
    fn long_job_writes_its_progress_less_often() {
        let log = LogBuffer::new(1000, Arc::default());
        let late = log.started + Duration::from_hours(24);
        log.progress(0.1, "");
        let _ = log.take(late);
        log.progress(0.2, "");
        assert_eq!(log.take(late).1, Some(late + Duration::from_hours(24) / PROGRESS_PER_RUN));
        assert_eq!(log.take_rest().len(), 1, "the end takes all");
    }

    #[test]
    fn text_of_progress_is_cut_to_its_bound() {
        let log = LogBuffer::new(1000, Arc::default());
        log.progress(0.5, &"ä".repeat(10_000));
        let text = "ä".repeat(PROGRESS_TEXT_CHARS_MAX);
        assert_eq!(log.take_rest(), [LogEntry::Progress { fraction: 0.5, text }]);
    }

    fn output(text: &str) -> LogEntry {
        LogEntry::output(text)
    }

    fn live(size_max_bytes: u64) -> LogBuffer {
        LogBuffer { is_live: true, ..LogBuffer::new(size_max_bytes, Arc::default()) }
    }

    #[test]
    fn output_goes_to_the_log_after_its_time_and_a_short_job_has_none_of_it() {
        let log = live(1000);
        log.line(Stream::Stderr, "b");
        log.output("a");
        let (early, live_at) = (log.started, log.started + LIVE_AFTER);
        assert_eq!(log.take(early), (vec![line(2, "b")], Some(live_at)));
        assert_eq!(log.take(live_at), (vec![output("a")], None));
        let short = live(1000);
        short.output("a");
        assert!(short.take_rest().is_empty());
        short.output_again("a");
        assert_eq!(short.take_rest(), [line(1, "a")], "unless it fails");
    }

    #[test]
    fn output_before_a_line_of_standard_error_stands_before_it() {
        let log = live(1000);
        log.output("tick 1");
        log.line(Stream::Stderr, "err 1");
        log.output("tick 2");
        assert_eq!(log.take_rest(), [output("tick 1"), line(2, "err 1"), output("tick 2")]);
        let large = live(1 << 20);
        large.output(&"x".repeat(20 * 1024));
        large.line(Stream::Stderr, "err 1");
        assert_eq!(large.take_rest(), [line(2, "err 1")], "a short job costs little");
    }

    #[test]
    fn output_in_the_log_is_not_logged_again_and_leaves_room_for_the_rest() {
        let log = live(200);
        log.output("a");
        let (taken, _) = log.take(log.started + LIVE_AFTER);
        log.output_again("a");
        assert_eq!((taken, log.take(log.started + LIVE_AFTER).0.len()), (vec![output("a")], 0));
        for _ in 0..100 {
            log.output("ten bytes.");
        }
        let (lines, _) = log.take(log.started + LIVE_AFTER);
        let mark = "[hero: more than 100 bytes or 40000 lines of output: no more is logged]";
        assert_eq!((lines.len(), &lines[lines.len() - 1]), (4, &output(mark)));
        log.line(Stream::Stderr, "after it");
        assert_eq!(log.take_rest()[0], line(2, "after it"));
    }

    #[test]
    fn binary_output_is_not_logged() {
        let log = live(1000);
        log.output("a\0b");
        log.output("c");
        let mark = output("[hero: the output is binary: no more of it is logged]");
        assert_eq!(log.take(log.started + LIVE_AFTER).0, [mark]);
    }
}
