//! Writes the log files of jobs from a thread that may block, so that a disk that hangs stops
//! neither the fetch loop nor any job.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::log_file::{LogFolder, NoLogFile, open_in};
use crate::failpoint;

/// The longest wait of a job for its log file: once to be opened, once to be written at the end.
/// After that it goes on without, and the file is written when the disk answers again.
const PATIENCE: Duration = Duration::from_secs(1);
const HANGS: &str = "the disk does not answer";

/// The thread that writes the log files of one worker, one after the other.
pub(super) struct LogWriter {
    folder: LogFolder,
    /// Absent until a job has a log file. One file may wait after the one being written.
    files: Option<SyncSender<Arc<LogFile>>>,
}

/// The log file of one job. The lines that wait to be written are bounded by the bytes that the
/// job may log.
#[derive(Debug, Default)]
pub(super) struct LogFile {
    path: String,
    state: Mutex<FileState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FileState {
    /// Lines that the thread has not taken yet.
    text: Vec<u8>,
    opened: Option<Result<(), NoLogFile>>,
    /// The job has written its last line.
    is_complete: bool,
    /// The thread has done its part.
    is_done: bool,
    /// The first error of the disk.
    failed: Option<String>,
}

impl LogWriter {
    /// Writes files below `folder`. Starts no thread yet.
    pub(super) fn new(folder: &LogFolder) -> Self {
        Self { folder: folder.clone(), files: None }
    }

    /// Opens the log file of the next job. Blocks for at most a second.
    pub(super) fn open(&mut self, path: &str) -> Result<Arc<LogFile>, NoLogFile> {
        let unavailable = |error: io::Error| NoLogFile::Unavailable(error.to_string());
        let files = match &self.files {
            Some(files) => files,
            None => self.files.insert(start(&self.folder).map_err(unavailable)?),
        };
        let file = Arc::new(LogFile { path: path.to_owned(), ..LogFile::default() });
        if files.try_send(Arc::clone(&file)).is_err() {
            return Err(NoLogFile::Unavailable(HANGS.to_owned()));
        }
        let state = file.wait_while(|state| state.opened.is_none());
        // If the disk hangs, nothing is known yet, and lines gather until the end of the job.
        if let Some(Err(refused)) = &state.opened {
            return Err(refused.clone());
        }
        drop(state);
        Ok(file)
    }
}

impl LogFile {
    /// Adds a line. Never blocks on the disk.
    pub(super) fn append(&self, line: &str) {
        let mut state = self.state.lock();
        state.text.extend_from_slice(line.as_bytes());
        state.text.push(b'\n');
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the file after its last line. Blocks for at most a second.
    ///
    /// # Errors
    /// Why lines are missing in the file.
    pub(super) fn close(&self) -> Result<(), String> {
        self.state.lock().is_complete = true;
        self.changed.notify_all();
        let state = self.wait_while(|state| !state.is_done);
        match &state.failed {
            Some(reason) => Err(reason.clone()),
            None if state.is_done => Ok(()),
            None => Err(HANGS.to_owned()),
        }
    }

    /// Writes the lines as they come, to the last one. Runs on the thread of the writer.
    fn write(&self, opened: Result<File, NoLogFile>) {
        let (mut file, opened) = match opened {
            Ok(file) => (Some(file), Ok(())),
            Err(refused) => (None, Err(refused)),
        };
        let mut state = self.state.lock();
        state.failed = opened.as_ref().err().map(ToString::to_string);
        state.opened = Some(opened);
        self.changed.notify_all();
        while let Some(open) = &mut file {
            let waiting = |state: &mut FileState| state.text.is_empty() && !state.is_complete;
            self.changed.wait_while(&mut state, waiting);
            let text = std::mem::take(&mut state.text);
            if text.is_empty() {
                break;
            }
            drop(state);
            let written = open.write_all(&text);
            state = self.state.lock();
            if let Err(error) = written {
                state.failed.get_or_insert(error.to_string());
            }
        }
        state.is_done = true;
        self.changed.notify_all();
    }

    fn wait_while(&self, waiting: impl Fn(&FileState) -> bool) -> MutexGuard<'_, FileState> {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| waiting(state), PATIENCE);
        state
    }
}

fn start(folder: &LogFolder) -> io::Result<SyncSender<Arc<LogFile>>> {
    let (files, next) = sync_channel(1);
    let folder = folder.clone();
    let write = move || write_all(&next, &folder);
    thread::Builder::new().name("log-writer".to_owned()).spawn(write)?;
    Ok(files)
}

fn write_all(files: &Receiver<Arc<LogFile>>, folder: &LogFolder) {
    while let Ok(file) = files.recv() {
        failpoint::stalls_at(failpoint::LOG_FILE);
        file.write(open_in(folder, &file.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read, pipe};

    /// A file that blocks once its buffer is full, until the other end is read.
    fn hanging() -> (Arc<LogFile>, thread::JoinHandle<()>, PipeReader) {
        let (reader, writer) = pipe().expect("a pipe");
        let file = Arc::new(LogFile::default());
        let on_thread = Arc::clone(&file);
        let opened = File::from(std::os::fd::OwnedFd::from(writer));
        (file, thread::spawn(move || on_thread.write(Ok(opened))), reader)
    }

    #[test]
    fn file_that_hangs_blocks_no_line_and_gets_all_of_them_later() {
        const LINES: usize = 10_000;
        let (file, writer, mut reader) = hanging();
        for _ in 0..LINES {
            file.append("more than a pipe holds");
        }
        assert_eq!(file.close(), Err(HANGS.to_owned()));
        let mut written = String::new();
        reader.read_to_string(&mut written).expect("UTF-8");
        assert_eq!(written.lines().count(), LINES);
        writer.join().expect("no panic");
        assert_eq!(file.close(), Ok(()));
    }

    #[test]
    fn job_behind_a_file_that_hangs_has_no_log_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = LogWriter::new(&LogFolder::at(folder.path()));
        let (files, _stuck) = sync_channel(1);
        writer.files = Some(files);
        // The first waits for its turn, until its patience ends.
        let waiting = writer.open("a").expect("it may be written later");
        assert_eq!(waiting.close(), Err(HANGS.to_owned()));
        let refused = writer.open("b").expect_err("no second one waits");
        assert_eq!(refused, NoLogFile::Unavailable(HANGS.to_owned()));
    }

    #[test]
    fn full_disk_is_reported_at_the_end() {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let file = LogFile::default();
        file.append("a line");
        file.state.lock().is_complete = true;
        file.write(Ok(full));
        let reason = file.close().expect_err("nothing was written");
        assert!(reason.contains("No space left on device"), "{reason}");
    }

    #[test]
    fn file_is_complete_when_its_job_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = LogWriter::new(&LogFolder::at(folder.path()));
        for line in ["one", "two"] {
            let file = writer.open("below/job.log").expect("opens");
            file.append(line);
            assert_eq!(file.close(), Ok(()));
        }
        let written = std::fs::read_to_string(folder.path().join("below/job.log"));
        assert_eq!(written.expect("readable"), "one\ntwo\n");
        let refused = writer.open("../elsewhere").expect_err("outside");
        assert!(matches!(refused, NoLogFile::Invalid(invalid) if invalid.field == "log_path"));
    }
}
