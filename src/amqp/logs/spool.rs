//! The log records that RabbitMQ could not be given, in files, until it takes them.
//!
//! Each file has a number of records, a line each. Records are added to the newest file and replayed
//! from the oldest. A file is deleted once all its records are published, so after a crash some of them
//! are published again: they keep their ids. A full spool loses its oldest file.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::record::{LogRecord, RecordProperties};

/// A file of this size is complete, unless the bound of the spool is small.
const FILE_SIZE: u64 = 256 << 10;
/// The files that a full spool has at least: one of them is lost for new records.
const FILES: u64 = 16;
/// The maximum number of records of a spool.
const RECORDS_MAX: usize = 1_000_000;
const EXTENSION: &str = ".records";

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
    /// The records that are not published yet.
    records: usize,
}

/// The records of the oldest file.
#[derive(Debug)]
pub struct SpoolBatch {
    pub records: VecDeque<LogRecord>,
    number: u64,
}

impl Spool {
    /// Opens the spool in a folder, with the records that an earlier process left there.
    ///
    /// # Errors
    /// The folder cannot be made or read, or another process uses it.
    pub fn open(folder: &Path, size_max: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o750).create(folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(io::Error::from)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(EXTENSION)?.parse().ok());
            if let Some(number) = number {
                let text = fs::read(folder.join(&name))?;
                let records = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                let records = records.count();
                files.push(SpoolFile { number, size: text.len() as u64, records });
            }
        }
        files.sort_unstable_by_key(|file| file.number);
        let next = files.last().map_or(0, |file| file.number + 1);
        let state = SpoolState { files: files.into(), open: None, next };
        Ok(Self { folder: folder.to_owned(), size_max, state: Mutex::new(state), _lock: lock })
    }

    /// Adds records. Returns the number of older ones that were lost for them.
    ///
    /// # Errors
    /// The file cannot be written: some of the records are not kept.
    pub fn push(&self, records: &[LogRecord]) -> io::Result<usize> {
        let mut state = self.state.lock();
        let mut lost = 0;
        for record in records {
            let mut line = record.document().to_string();
            line.push('\n');
            let size = line.len() as u64;
            while state.size() + size > self.size_max || state.records() >= RECORDS_MAX {
                let Some(file) = state.take_oldest() else { break };
                lost += file.records;
                self.remove(file.number)?;
            }
            self.write(&mut state, &line)?;
        }
        if let Some((_, open)) = &state.open {
            open.sync_data()?;
        }
        Ok(lost)
    }

    fn write(&self, state: &mut SpoolState, line: &str) -> io::Result<()> {
        let (mut file, mut open) = if let Some(open) = state.open.take() {
            open
        } else {
            let number = state.next;
            let open = OpenOptions::new().create_new(true).append(true).open(self.path(number))?;
            state.next += 1;
            (SpoolFile { number, size: 0, records: 0 }, open)
        };
        // After an error the last line of the file may be cut: nothing is added after it.
        let written = open.write_all(line.as_bytes());
        file.size += line.len() as u64;
        file.records += usize::from(written.is_ok());
        if written.is_ok() && file.size < FILE_SIZE.min(self.size_max / FILES) {
            state.open = Some((file, open));
        } else {
            let synced = open.sync_data();
            state.files.push_back(file);
            synced?;
        }
        written
    }

    /// Returns the records of the oldest file; `None` if the spool is empty.
    pub fn oldest(&self) -> io::Result<Option<SpoolBatch>> {
        let mut state = self.state.lock();
        if state.files.is_empty()
            && let Some((file, _)) = state.open.take()
        {
            state.files.push_back(file);
        }
        let Some(file) = state.files.front_mut() else { return Ok(None) };
        let text = fs::read(self.path(file.number))?;
        // The last line of a process that was killed may be cut.
        let records: VecDeque<LogRecord> = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| {
                let document = serde_json::from_slice(line).ok()?;
                LogRecord::of(&document, RecordProperties::default(), Timestamp::UNIX_EPOCH).ok()
            })
            .collect();
        file.records = records.len();
        Ok(Some(SpoolBatch { number: file.number, records }))
    }

    /// Notes the records of a batch that are left, and deletes its file if there are none.
    pub fn published(&self, batch: &SpoolBatch) -> io::Result<()> {
        let mut state = self.state.lock();
        // A full spool may have lost the file meanwhile.
        let Some(file) = state.files.iter_mut().find(|file| file.number == batch.number) else {
            return Ok(());
        };
        file.records = batch.records.len();
        if file.records == 0 {
            self.remove(batch.number)?;
            state.files.retain(|file| file.number != batch.number);
        }
        Ok(())
    }

    /// Returns the number of records that are not published.
    pub fn records(&self) -> usize {
        self.state.lock().records()
    }

    /// Returns true if there is no file.
    pub fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.files.is_empty() && state.open.is_none()
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        match fs::remove_file(self.path(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:020}{EXTENSION}"))
    }
}

impl SpoolState {
    fn all(&self) -> impl Iterator<Item = &SpoolFile> {
        self.files.iter().chain(self.open.as_ref().map(|(file, _)| file))
    }

    fn size(&self) -> u64 {
        self.all().map(|file| file.size).sum()
    }

    fn records(&self) -> usize {
        self.all().map(|file| file.records).sum()
    }

    fn take_oldest(&mut self) -> Option<SpoolFile> {
        self.files.pop_front().or_else(|| self.open.take().map(|(file, _)| file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(number: usize) -> LogRecord {
        let data = json!({ "id": format!("r{number}"), "message": "x".repeat(100) });
        LogRecord::of(&data, RecordProperties::default(), Timestamp::UNIX_EPOCH).expect("legal")
    }

    fn opened(folder: &Path, size_max: u64) -> Spool {
        Spool::open(folder, size_max).expect("opened")
    }

    /// Takes everything, and returns its ids.
    fn drained(spool: &Spool) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(mut batch) = spool.oldest().expect("read") {
            ids.extend(batch.records.drain(..).map(|record| record.id.to_string()));
            spool.published(&batch).expect("deleted");
        }
        ids
    }

    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|number| format!("r{number}")).collect()
    }

    #[test]
    fn records_come_back_in_their_order_also_in_another_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = opened(folder.path(), 10 << 20);
        assert!(spool.is_empty());
        // More than one file.
        let all: Vec<LogRecord> = (0..3000).map(record).collect();
        assert_eq!(spool.push(&all).expect("kept"), 0);
        assert!(Spool::open(folder.path(), 10 << 20).is_err(), "two processes on one spool");
        drop(spool);
        let spool = opened(folder.path(), 10 << 20);
        assert_eq!(spool.records(), 3000);
        (3000..3010).for_each(|number| _ = spool.push(&[record(number)]).expect("kept"));
        assert_eq!(drained(&spool), names(0..3010));
        assert!(spool.is_empty() && spool.records() == 0);
        let left = fs::read_dir(folder.path()).expect("listed").count();
        assert_eq!(left, 1, "only the lock");
    }

    #[test]
    fn a_batch_that_was_published_in_part_is_counted_and_comes_again_after_a_crash() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = opened(folder.path(), 1 << 20);
        spool.push(&[record(0), record(1), record(2)]).expect("kept");
        let mut batch = spool.oldest().expect("read").expect("a batch");
        batch.records.pop_front();
        spool.published(&batch).expect("noted");
        spool.push(&[record(3)]).expect("kept");
        assert_eq!(spool.records(), 3);
        drop(spool);
        assert_eq!(drained(&opened(folder.path(), 1 << 20)), names(0..4));
    }

    #[test]
    fn a_full_spool_loses_its_oldest_records_and_counts_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = opened(folder.path(), 16 << 10);
        let mut lost = 0;
        let batch = (0..1000).find_map(|number| {
            lost += spool.push(&[record(number)]).expect("kept");
            (number == 10).then(|| spool.oldest().expect("read").expect("a batch"))
        });
        lost +=
            (11..1000).map(|number| spool.push(&[record(number)]).expect("kept")).sum::<usize>();
        let mut batch = batch.expect("the tenth");
        // Its file is lost meanwhile.
        batch.records.clear();
        spool.published(&batch).expect("nothing to delete");
        let size: u64 = fs::read_dir(folder.path())
            .expect("listed")
            .map(|entry| entry.expect("an entry").metadata().expect("its size").len())
            .sum();
        assert!(size <= 16 << 10, "{size}");
        assert!(lost > 800 && spool.records() == 1000 - lost, "{lost}");
        assert_eq!(drained(&spool), names(lost..1000));
        assert_eq!(spool.push(&[record(7)]).expect("kept"), 0, "there is room again");
    }

    #[test]
    fn a_line_that_was_cut_is_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = record(1).document().to_string();
        let text = format!("{line}\n{}", &line[..20]);
        fs::write(folder.path().join(format!("{:020}{EXTENSION}", 4)), text).expect("written");
        let spool = opened(folder.path(), 1 << 20);
        spool.push(&[record(2)]).expect("kept");
        assert_eq!(drained(&spool), ["r1", "r2"]);
    }
}
