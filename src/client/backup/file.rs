//! The file of a backup: lines, their count, and their checksum.

use std::io::{self, BufRead, Read, Write};

use ring::digest::{Context, SHA256};

use super::BackupError;
use crate::proto::backup::{BackupLine, End, FORMAT, Head};
use crate::proto::text::hexadecimal;

/// The longest line that is read, in bytes.
const LINE_MAX: u64 = 512 << 20;

struct Sum {
    digest: Context,
    lines: u64,
    jobs: u64,
    objects: u64,
}

impl Sum {
    fn new() -> Self {
        Self { digest: Context::new(&SHA256), lines: 0, jobs: 0, objects: 0 }
    }

    fn add(&mut self, line: &BackupLine, bytes: &[u8]) {
        self.digest.update(bytes);
        self.lines += 1;
        self.jobs += u64::from(matches!(line, BackupLine::Job(_)));
        self.objects += u64::from(matches!(line, BackupLine::Object(_)));
    }

    fn end(&self) -> End {
        let sha256 = hexadecimal(self.digest.clone().finish().as_ref());
        End { lines: self.lines, jobs: self.jobs, objects: self.objects, sha256 }
    }
}

pub struct BackupWriter<W> {
    to: W,
    sum: Sum,
    jobs_without_files: u64,
}

impl<W: Write> BackupWriter<W> {
    pub fn new(to: W) -> Self {
        Self { to, sum: Sum::new(), jobs_without_files: 0 }
    }

    pub fn write(&mut self, line: &BackupLine) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.to.write_all(&bytes)?;
        self.sum.add(line, &bytes);
        self.jobs_without_files +=
            u64::from(matches!(line, BackupLine::Job(job) if job.lacks_files()));
        Ok(())
    }

    /// Writes the end, with counts and checksum.
    pub fn end(&mut self) -> io::Result<()> {
        self.write(&BackupLine::End(self.sum.end()))?;
        self.to.flush()
    }

    /// Returns the numbers of jobs and objects written.
    pub fn counts(&self) -> (u64, u64) {
        (self.sum.jobs, self.sum.objects)
    }

    /// Returns the number of written jobs that have not ended and whose input files are left out.
    pub fn jobs_without_files(&self) -> u64 {
        self.jobs_without_files
    }

    pub fn into_inner(self) -> W {
        self.to
    }
}

pub struct BackupReader<R> {
    from: R,
    sum: Sum,
    has_ended: bool,
    line_bytes: usize,
}

const NO_BACKUP: &str = "it is no backup of Hero";

impl<R: BufRead> BackupReader<R> {
    pub fn new(from: R) -> Self {
        Self { from, sum: Sum::new(), has_ended: false, line_bytes: 0 }
    }

    /// Reads the head.
    ///
    /// # Errors
    /// [`BackupError`] if the file is no backup, or one of a later version.
    pub fn head(&mut self) -> Result<Head, BackupError> {
        match self.next_line()? {
            Some(BackupLine::Backup(head)) if head.format == FORMAT => Ok(head),
            Some(BackupLine::Backup(head)) => Err(BackupError::Rejected(format!(
                "its format {} is not known here, where the format is {FORMAT}; restore it with \
                 hero {} or a later version",
                head.format, head.version
            ))),
            _ => Err(BackupError::Rejected(NO_BACKUP.to_owned())),
        }
    }

    pub(super) fn line_bytes(&self) -> usize {
        self.line_bytes
    }

    /// Reads the next line. `None` after the end, whose counts and checksum have been compared.
    ///
    /// # Errors
    /// [`BackupError`] if the line is no line of a backup, or the file was changed or cut off.
    pub fn next_line(&mut self) -> Result<Option<BackupLine>, BackupError> {
        let number = self.sum.lines + 1;
        let reject = |why: String| BackupError::Rejected(format!("line {number}: {why}"));
        let mut bytes = Vec::new();
        self.from.by_ref().take(LINE_MAX + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() && self.has_ended {
            return Ok(None);
        }
        if self.has_ended {
            return Err(reject("the backup has ended before".to_owned()));
        }
        if bytes.len() as u64 > LINE_MAX {
            return Err(reject(format!("it is longer than the limit of {LINE_MAX} bytes")));
        }
        if bytes.last() != Some(&b'\n') {
            return Err(reject("the file is cut off here".to_owned()));
        }
        let line: BackupLine = serde_json::from_slice(&bytes).map_err(|error| match number {
            1 => BackupError::Rejected(format!("{NO_BACKUP}: line 1: {error}")),
            _ => reject(error.to_string()),
        })?;
        if let BackupLine::End(end) = &line {
            if *end != self.sum.end() {
                return Err(BackupError::Rejected(
                    "its checksum or its counts are wrong: it was changed after the backup"
                        .to_owned(),
                ));
            }
            self.has_ended = true;
        }
        line.check().map_err(reject)?;
        self.sum.add(&line, &bytes);
        self.line_bytes = bytes.len();
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut writer = BackupWriter::new(Vec::new());
        let head = Head {
            format: FORMAT,
            version: "0".to_owned(),
            namespace: "hero".to_owned(),
            time: "now".to_owned(),
            shards: None,
        };
        writer.write(&BackupLine::Backup(head)).expect("written");
        writer.write(&BackupLine::Paused(vec!["type:osis".to_owned()])).expect("written");
        writer.end().expect("written");
        writer.into_inner()
    }

    fn read(bytes: &[u8]) -> Result<usize, BackupError> {
        let mut reader = BackupReader::new(bytes);
        reader.head()?;
        let mut lines = 0;
        while reader.next_line()?.is_some() {
            lines += 1;
        }
        Ok(lines)
    }

    #[test]
    fn complete_file_is_read_and_every_prefix_of_it_is_rejected() {
        let bytes = written();
        assert_eq!(read(&bytes).expect("complete"), 2);
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{len} bytes were accepted");
        }
        assert!(read(&[bytes.as_slice(), bytes.as_slice()].concat()).is_err(), "twice");
    }

    #[test]
    fn changed_byte_is_rejected() {
        let bytes = written();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert!(read(&changed).is_err(), "byte {place} was changed");
        }
    }

    #[test]
    fn later_format_names_the_version_that_reads_it() {
        let mut writer = BackupWriter::new(Vec::new());
        let (version, namespace, time) = ("9.0".to_owned(), String::new(), String::new());
        writer
            .write(&BackupLine::Backup(Head {
                format: FORMAT + 1,
                version,
                namespace,
                time,
                shards: None,
            }))
            .expect("written");
        let error = read(&writer.into_inner()).expect_err("rejected").to_string();
        assert!(error.contains("restore it with hero 9.0"), "{error}");
    }
}
