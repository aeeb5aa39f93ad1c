//! What a child writes to one of its two pipes: kept as far as it may be, and logged by lines.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::child::Watch;
use super::lines::{Lines, Tail};
use crate::engine::{Log, Stream};

/// One of the two pipes, read without blocking.
#[derive(Debug)]
pub(super) struct Pipe {
    /// None once the other end is closed.
    pub(super) read_end: Option<OwnedFd>,
    stream: Stream,
    /// What has been read, as far as it was to be kept.
    pub(super) kept: Vec<u8>,
    lines: Lines,
    /// The end of what was read, where it is standard error.
    pub(super) tail: Tail,
}

impl Pipe {
    pub(super) fn new(read_end: OwnedFd, stream: Stream) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&read_end, true)?;
        let (lines, tail) = (Lines::default(), Tail::default());
        Ok(Self { read_end: Some(read_end), stream, kept: Vec::new(), lines, tail })
    }

    /// Reads what is there, at most a few buffers of it, so that one stream cannot keep the other
    /// or the clock from being looked at. Returns how many bytes did not fit into `kept`.
    pub(super) fn read(&mut self, watch: &Watch<'_>) -> u64 {
        const READS_AT_ONCE: usize = 4;
        let mut buffer = [0_u8; 16 * 1024];
        let mut lost: u64 = 0;
        for _ in 0..READS_AT_ONCE {
            let Some(read_end) = &self.read_end else { break };
            match rustix::io::read(read_end, &mut buffer) {
                Ok(0) => self.close(watch),
                Ok(count) => lost += self.take(&buffer[..count], watch),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => self.close(watch),
            }
        }
        lost
    }

    fn take(&mut self, bytes: &[u8], watch: &Watch<'_>) -> u64 {
        let bytes_max = match self.stream {
            Stream::Stdout => watch.stdout_bytes_max,
            Stream::Stderr => watch.stderr_bytes_max,
        };
        let room = bytes_max.saturating_sub(self.kept.len() as u64);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..fits]);
        if self.stream == Stream::Stderr {
            self.tail.push(bytes);
        }
        if let Some(log) = self.log(watch) {
            self.lines.push(bytes, &mut |line| log.line(self.stream, line));
        }
        (bytes.len() - fits) as u64
    }

    pub(super) fn close(&mut self, watch: &Watch<'_>) {
        self.read_end = None;
        if let Some(log) = self.log(watch) {
            self.lines.finish(&mut |line| log.line(self.stream, line));
        }
    }

    fn log<'a>(&self, watch: &Watch<'a>) -> Option<&'a dyn Log> {
        let wanted = self.stream == Stream::Stderr || watch.log_stdout;
        watch.log.filter(|_| wanted)
    }
}
