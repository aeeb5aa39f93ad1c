//! The log of one running job, kept until the fetch loop takes it to Redis. Scripts never wait
//! for it: what exceeds the job's share is dropped, and the log says so once.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::log_file;
use crate::engine::{Log, Stream};
use crate::proto::job::JobId;

/// What one line costs beside its text, so that empty lines are bounded too.
const LINE_OVERHEAD_BYTES: u64 = 16;

/// A line on its way: 1 or 2 for the stream, and the text.
pub(super) type Line = (u8, String);

/// Bounded by the bytes a job may log in all.
#[derive(Debug)]
pub(super) struct LogBuffer {
    lines: Mutex<Lines>,
    size_max_bytes: u64,
    written: Arc<Notify>,
    /// The job, if its lines go to the daemon's own log as well.
    to_journal: Option<JobId>,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<Line>,
    size_bytes: u64,
    full: bool,
    file: Option<File>,
}

impl LogBuffer {
    /// `written` is notified whenever a line comes into an empty buffer.
    pub(super) fn new(size_max_bytes: u64, written: Arc<Notify>) -> Self {
        Self { lines: Mutex::default(), size_max_bytes, written, to_journal: None }
    }

    /// Lines go to the daemon's own log as well, under the job's id.
    pub(super) fn also_to_journal(self, id: JobId) -> Self {
        Self { to_journal: Some(id), ..self }
    }

    /// Lines go into this file as well, from now on.
    pub(super) fn also_into(&self, file: File) {
        self.lock().file = Some(file);
    }

    /// Takes what waits.
    pub(super) fn take(&self) -> Vec<Line> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Puts back lines that could not be written, before those that came since.
    pub(super) fn put_back(&self, mut lines: Vec<Line>) {
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
        self.waiting.push((fd, line.to_owned()));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_beyond_its_share_is_cut_off_and_says_so_once() {
        let log = LogBuffer::new(100, Arc::default());
        for _ in 0..1000 {
            log.line(Stream::Stdout, "ten bytes.");
        }
        let lines = log.take();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[3], (2, "log cut off here: more than 100 bytes".to_owned()));
        log.line(Stream::Stdout, "more");
        assert!(log.take().is_empty());
    }

    #[test]
    fn lines_put_back_come_before_later_ones() {
        let log = LogBuffer::new(1000, Arc::default());
        log.line(Stream::Stdout, "a");
        let taken = log.take();
        log.line(Stream::Stderr, "b");
        log.put_back(taken);
        assert_eq!(log.take(), [(1, "a".to_owned()), (2, "b".to_owned())]);
    }
}
