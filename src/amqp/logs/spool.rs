//! The records that RabbitMQ rejects, in files, until it takes them.
//!
//! Each file has a number of records, a line each. Records are added to the newest file and replayed
//! from the oldest. A file is deleted once all its records have been taken, so some of them may be
//! replayed twice: they keep their ids.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::record::{Beside, LogRecord};
use crate::config::format_size;

/// The size from which a file is complete.
const FILE_SIZE: u64 = 256 << 10;
const EXTENSION: &str = "records";

/// The spool of one process.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    size_max: u64,
    state: Mutex<SpoolState>,
    /// No other process uses the folder while this is open.
    _lock: File,
}

#[derive(Debug, Default)]
struct SpoolState {
    /// The complete files, the oldest first.
    files: VecDeque<SpoolFile>,
    /// The file that records are added to.
    open: Option<(SpoolFile, File)>,
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SpoolFile {
    number: u64,
    size: u64,
}

/// The records of the oldest file.
#[derive(Debug)]
pub struct SpoolBatch {
    /// The records, in their order.
    pub records: Vec<LogRecord>,
    file: SpoolFile,
}

/// The reason why a record is lost.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The spool has reached its bound.
    #[error(
        "the spool of log records in {} has reached amqp.logs.spool_size_max, which is {}: records \
         that RabbitMQ rejects are lost until it takes some",
        .folder.display(),
        format_size(*.size_max)
    )]
    Full {
        /// The folder of the spool.
        folder: PathBuf,
        /// Its bound, in bytes.
        size_max: u64,
    },
    /// The file cannot be written.
    #[error("cannot write to the spool of log records in {}: {error}", .folder.display())]
    Unwritable {
        /// The folder of the spool.
        folder: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl Spool {
    /// Opens the spool in a folder, with what an earlier process left there.
    ///
    /// # Errors
    /// The folder cannot be made or read, or another process uses it.
    pub fn open(folder: &Path, size_max: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o750).create(folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(io::Error::from)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(EXTENSION));
            let number = number.and_then(|name| name.strip_suffix('.')?.parse().ok());
            if let Some(number) = number {
                files.push(SpoolFile { number, size: entry.metadata()?.len() });
            }
        }
        files.sort_unstable_by_key(|file| file.number);
        let next = files.last().map_or(0, |file| file.number + 1);
        let state = SpoolState { files: files.into(), open: None, next };
        Ok(Self { folder: folder.to_owned(), size_max, state: Mutex::new(state), _lock: lock })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`SpoolError`]: the record is not kept.
    pub fn push(&self, record: &LogRecord) -> Result<(), SpoolError> {
        let mut line = record.document().to_string();
        line.push('\n');
        let mut state = self.lock();
        let size = line.len() as u64;
        if state.size() + size > self.size_max {
            return Err(SpoolError::Full { folder: self.folder.clone(), size_max: self.size_max });
        }
        let unwritable = |error| SpoolError::Unwritable { folder: self.folder.clone(), error };
        let (mut file, mut open) = if let Some(open) = state.open.take() {
            open
        } else {
            let number = state.next;
            state.next += 1;
            let path = self.path(number);
            let open = OpenOptions::new().create_new(true).append(true).open(path);
            (SpoolFile { number, size: 0 }, open.map_err(unwritable)?)
        };
        file.size += size;
        // After an error the last line of the file may be cut: nothing is added behind it.
        let written = open.write_all(line.as_bytes());
        if written.is_err() || file.size >= FILE_SIZE {
            state.files.push_back(file);
        } else {
            state.open = Some((file, open));
        }
        written.map_err(unwritable)
    }

    /// Returns the records of the oldest file; `None` if the spool is empty.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn oldest(&self) -> io::Result<Option<SpoolBatch>> {
        let mut state = self.lock();
        if state.files.is_empty()
            && let Some((file, _)) = state.open.take()
        {
            state.files.push_back(file);
        }
        let Some(file) = state.files.front().copied() else { return Ok(None) };
        drop(state);
        let text = fs::read_to_string(self.path(file.number))?;
        // The last line of a process that was killed may be cut.
        let records = text.lines().filter_map(|line| {
            let document = serde_json::from_str(line).ok()?;
            LogRecord::of(&document, Beside::default(), Timestamp::UNIX_EPOCH).ok()
        });
        Ok(Some(SpoolBatch { records: records.collect(), file }))
    }

    /// Deletes the file of a batch whose records have all been taken.
    ///
    /// # Errors
    /// The file cannot be deleted.
    pub fn taken(&self, batch: &SpoolBatch) -> io::Result<()> {
        fs::remove_file(self.path(batch.file.number))?;
        self.lock().files.retain(|file| file.number != batch.file.number);
        Ok(())
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        let state = self.lock();
        state.files.is_empty() && state.open.is_none()
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:020}.{EXTENSION}"))
    }

    fn lock(&self) -> MutexGuard<'_, SpoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpoolState {
    fn size(&self) -> u64 {
        let complete: u64 = self.files.iter().map(|file| file.size).sum();
        complete + self.open.as_ref().map_or(0, |(file, _)| file.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(number: usize) -> LogRecord {
        let data = json!({ "id": format!("r{number}"), "message": "x".repeat(100) });
        LogRecord::of(&data, Beside::default(), Timestamp::UNIX_EPOCH).expect("legal")
    }

    /// Takes everything, and returns its ids.
    fn drained(spool: &Spool) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(batch) = spool.oldest().expect("read") {
            ids.extend(batch.records.iter().map(|record| record.id.to_string()));
            spool.taken(&batch).expect("deleted");
        }
        ids
    }

    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|number| format!("r{number}")).collect()
    }

    #[test]
    fn records_come_back_in_their_order_also_in_another_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 10 << 20).expect("opened");
        assert!(spool.is_empty());
        // More than one file.
        (0..3000).for_each(|number| spool.push(&record(number)).expect("kept"));
        assert!(Spool::open(folder.path(), 10 << 20).is_err(), "two processes on one spool");
        drop(spool);
        let spool = Spool::open(folder.path(), 10 << 20).expect("opened");
        (3000..3010).for_each(|number| spool.push(&record(number)).expect("kept"));
        assert_eq!(drained(&spool), names(0..3010));
        assert!(spool.is_empty());
        let left = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(left, 1, "only the lock");
    }

    #[test]
    fn a_batch_that_was_not_taken_comes_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 1 << 20).expect("opened");
        spool.push(&record(0)).expect("kept");
        assert_eq!(spool.oldest().expect("read").expect("a batch").records, [record(0)]);
        spool.push(&record(1)).expect("kept");
        assert_eq!(drained(&spool), names(0..2));
    }

    #[test]
    fn the_bound_holds_and_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 1024).expect("opened");
        let kept = (0..100).take_while(|number| spool.push(&record(*number)).is_ok()).count();
        assert!((1..10).contains(&kept), "{kept}");
        let error = spool.push(&record(0)).expect_err("full").to_string();
        assert!(error.contains("spool_size_max, which is 1KiB"), "{error}");
        assert_eq!(drained(&spool), names(0..kept));
        spool.push(&record(7)).expect("there is room again");
    }

    #[test]
    fn a_line_that_was_cut_is_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = record(1).document().to_string();
        let text = format!("{line}\n{}", &line[..20]);
        fs::write(folder.path().join(format!("{:020}.{EXTENSION}", 4)), text).expect("written");
        let spool = Spool::open(folder.path(), 1 << 20).expect("opened");
        spool.push(&record(2)).expect("kept");
        assert_eq!(drained(&spool), ["r1", "r2"]);
    }
}
