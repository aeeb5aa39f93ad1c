//! The log of one running job, kept until the fetch loop takes it to Redis. Scripts never wait
//! for it: what exceeds the job's share is dropped, and the log says so once.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::log_file;
use crate::engine::{Log, Stream, Usage};
use crate::proto::job::JobId;
use crate::store::LogEntry;

/// What one line costs beside its text, so that empty lines are bounded too.
const LINE_OVERHEAD_BYTES: u64 = 16;
/// The longest text that goes with progress, in characters.
const PROGRESS_TEXT_CHARS_MAX: usize = 200;
/// How often progress is written at the most.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// The same as a part of the time that the job has run: whoever waits for a day needs no news
/// four times a second, and they would push the lines out of the log.
const PROGRESS_PER_RUN: u32 = 200;

/// Bounded by the bytes a job may log in all.
#[derive(Debug)]
pub(super) struct LogBuffer {
    lines: Mutex<Lines>,
    size_max_bytes: u64,
    written: Arc<Notify>,
    began: Instant,
    /// The job, if its lines go to the daemon's own log as well.
    to_journal: Option<JobId>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<LogEntry>,
    size_bytes: u64,
    full: bool,
    file: Option<File>,
    /// What has not been taken yet; older news are nothing to anybody.
    progress: Option<LogEntry>,
    /// Progress that comes before this time waits.
    progress_at: Option<Instant>,
    used: Option<Usage>,
}

impl LogBuffer {
    /// `written` is notified whenever a line comes into an empty buffer.
    pub(super) fn new(size_max_bytes: u64, written: Arc<Notify>) -> Self {
        let began = Instant::now();
        Self { lines: Mutex::default(), size_max_bytes, written, began, to_journal: None }
    }

    /// Lines go to the daemon's own log as well, under the job's id.
    pub(super) fn also_to_journal(self, id: JobId) -> Self {
        Self { to_journal: Some(id), ..self }
    }

    /// Lines go into this file as well, from now on.
    pub(super) fn also_into(&self, file: File) {
        self.lock().file = Some(file);
    }

    /// Takes what waits and is due. Progress that is not makes the next take worth while at the
    /// time that comes with it.
    pub(super) fn take(&self, now: Instant) -> (Vec<LogEntry>, Option<Instant>) {
        let mut inner = self.lock();
        let later = inner.progress_at.filter(|at| inner.progress.is_some() && now < *at);
        let mut entries = std::mem::take(&mut inner.waiting);
        if later.is_none()
            && let Some(progress) = inner.progress.take()
        {
            entries.push(progress);
            let ran = now.saturating_duration_since(self.began);
            inner.progress_at = Some(now + PROGRESS_EVERY.max(ran / PROGRESS_PER_RUN));
        }
        (entries, later)
    }

    /// Takes all that waits: the job has ended.
    pub(super) fn take_rest(&self) -> Vec<LogEntry> {
        let mut inner = self.lock();
        let progress = inner.progress.take();
        std::mem::take(&mut inner.waiting).into_iter().chain(progress).collect()
    }

    /// What its process has used, as fields of its hash; none where no process ran.
    pub(super) fn used_fields(&self) -> Vec<(&'static str, String)> {
        let Some(used) = self.lock().used else { return Vec::new() };
        let mut fields = vec![
            ("cpu_time", format!("{:.3}", used.cpu.as_secs_f64())),
            ("memory_peak", used.memory_bytes.to_string()),
        ];
        fields.extend(used.signal.map(|signal| ("signal", signal.to_string())));
        fields.extend(used.limit.map(|limit| ("limit", limit.as_str().to_owned())));
        fields
    }

    /// Puts back lines that could not be written, before those that came since.
    pub(super) fn put_back(&self, mut lines: Vec<LogEntry>) {
        let mut inner = self.lock();
        lines.append(&mut inner.waiting);
        inner.waiting = lines;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        // A panic elsewhere leaves a list of lines that is still a list of lines.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn keep(&mut self, fd: u8, line: &str) {
        if let Some(file) = &mut self.file {
            log_file::append(file, line);
        }
        self.waiting.push(LogEntry::Line { fd, line: line.to_owned() });
    }
}

impl Log for LogBuffer {
    fn line(&self, stream: Stream, line: &str) {
        let fd = match stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        };
        let mut inner = self.lock();
        if inner.full {
            return;
        }
        inner.size_bytes += line.len() as u64 + LINE_OVERHEAD_BYTES;
        let first = inner.waiting.is_empty();
        if inner.size_bytes > self.size_max_bytes {
            inner.full = true;
            let note = format!("log cut off here: more than {} bytes", self.size_max_bytes);
            inner.keep(2, &note);
        } else {
            inner.keep(fd, line);
            if let Some(id) = &self.to_journal {
                tracing::info!(job_id = %id, fd, "{line}");
            }
        }
        drop(inner);
        if first {
            self.written.notify_one();
        }
    }

    fn used(&self, usage: &Usage) {
        self.lock().used = Some(*usage);
    }

    fn progress(&self, fraction: f64, text: &str) {
        let line: String = text.chars().take(PROGRESS_TEXT_CHARS_MAX).collect();
        let entry = LogEntry::Progress { fraction, text: line };
        let first = self.lock().progress.replace(entry).is_none();
        if first {
            self.written.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fd: u8, line: &str) -> LogEntry {
        LogEntry::Line { fd, line: line.to_owned() }
    }

    fn progress(fraction: f64) -> LogEntry {
        LogEntry::Progress { fraction, text: "at it".to_owned() }
    }

    #[test]
    fn a_log_beyond_its_share_is_cut_off_and_says_so_once() {
        let log = LogBuffer::new(100, Arc::default());
        for _ in 0..1000 {
            log.line(Stream::Stdout, "ten bytes.");
        }
        let lines = log.take_rest();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[3], line(2, "log cut off here: more than 100 bytes"));
        log.line(Stream::Stdout, "more");
        assert!(log.take_rest().is_empty());
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
    fn of_much_progress_the_latest_is_taken_and_no_more_often_than_it_may() {
        let log = LogBuffer::new(1000, Arc::default());
        let now = log.began;
        for n in 1..100_u8 {
            log.progress(f64::from(n) / 100.0, "at it");
        }
        assert_eq!(log.take(now), (vec![progress(0.99)], None));
        log.progress(1.0, "at it");
        log.line(Stream::Stdout, "a");
        let soon = now + PROGRESS_EVERY;
        assert_eq!(log.take(now), (vec![line(1, "a")], Some(soon)), "lines wait for nothing");
        assert_eq!(log.take(soon), (vec![progress(1.0)], None));
        assert_eq!(log.take(soon), (Vec::new(), None), "nothing is said twice");
    }

    #[test]
    fn a_job_that_runs_for_a_day_tells_its_progress_less_often() {
        let log = LogBuffer::new(1000, Arc::default());
        let late = log.began + Duration::from_hours(24);
        log.progress(0.1, "");
        let _ = log.take(late);
        log.progress(0.2, "");
        assert_eq!(log.take(late).1, Some(late + Duration::from_hours(24) / PROGRESS_PER_RUN));
        assert_eq!(log.take_rest().len(), 1, "the end waits for nothing");
    }

    #[test]
    fn a_text_of_progress_is_cut_to_its_bound() {
        let log = LogBuffer::new(1000, Arc::default());
        log.progress(0.5, &"ä".repeat(10_000));
        let text = "ä".repeat(PROGRESS_TEXT_CHARS_MAX);
        assert_eq!(log.take_rest(), [LogEntry::Progress { fraction: 0.5, text }]);
    }
}
