//! The output pipes of a child: keeps the output up to a bound, and logs it line by line.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, PipeReader, Read};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::lines::{LineSplitter, Tail, is_noise};
use super::settings::Watch;
use crate::engine::{Log, Stream};

/// The reading end of a pipe that does not block.
#[derive(Debug)]
pub(super) struct Reader {
    /// `None` once the other end is closed.
    pub(super) end: Option<PipeReader>,
    pub(super) bytes: u64,
}

impl Reader {
    pub(super) fn new(end: PipeReader) -> io::Result<Self> {
        fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { end: Some(end), bytes: 0 })
    }

    /// Passes on what can be read, a few buffers at most, so that one pipe does not delay the others or the clock.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8])) {
        const READS_AT_ONCE: usize = 4;
        let mut buffer = [0_u8; 16 * 1024];
        for _ in 0..READS_AT_ONCE {
            let Some(end) = &mut self.end else { break };
            match end.read(&mut buffer) {
                Ok(0) => self.end = None,
                Ok(count) => {
                    self.bytes += count as u64;
                    take(&buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.end = None,
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) reader: Reader,
    pub(super) output: Output,
}

#[derive(Debug)]
pub(super) struct Output {
    stream: Stream,
    /// The first bytes, up to the bound; the last, if the end is kept.
    pub(super) kept: VecDeque<u8>,
    /// The number of bytes before the end that is kept.
    pub(super) missing: u64,
    lines: LineSplitter,
    /// The log was told of a line that has not ended.
    is_unfinished: bool,
    pub(super) tail: Tail,
}

impl Pipe {
    pub(super) fn new(read_end: PipeReader, stream: Stream) -> io::Result<Self> {
        let (lines, tail) = (LineSplitter::default(), Tail::default());
        let output =
            Output { stream, kept: VecDeque::new(), missing: 0, lines, is_unfinished: false, tail };
        Ok(Self { reader: Reader::new(read_end)?, output })
    }

    /// Reads the bytes that are there. Returns whether they exceeded the bound.
    pub(super) fn read(&mut self, watch: &Watch<'_>) -> bool {
        let mut exceeds = false;
        self.reader.read(|bytes| exceeds |= self.output.take(bytes, watch));
        exceeds
    }

    pub(super) fn close(&mut self, watch: &Watch<'_>) {
        self.reader.end = None;
        if let Some(log) = watch.log {
            self.output.end_unfinished(log);
            let Output { stream, lines, .. } = &mut self.output;
            match place(*stream, watch, log) {
                Place::Log => lines.finish(&mut |line| to_log(log, *stream, line)),
                Place::Output => lines.finish(&mut |line| log.output(line)),
                Place::None => {}
            }
        }
    }
}

impl Output {
    fn take(&mut self, bytes: &[u8], watch: &Watch<'_>) -> bool {
        let bytes_max = match self.stream {
            // The log has it.
            Stream::Stderr if watch.is_of_job => 0,
            _ => watch.output_bytes_max,
        };
        let fits = self.keep(bytes, bytes_max, watch.keeps_stdout_end);
        if self.stream == Stream::Stderr {
            self.tail.push(bytes);
        }
        if let Some(log) = watch.log {
            // Its line takes its place.
            if self.lines.ends_with(bytes) {
                self.end_unfinished(log);
            }
            match place(self.stream, watch, log) {
                Place::Log => self.lines.push(bytes, &mut |line| to_log(log, self.stream, line)),
                Place::Output => self.lines.push(&bytes[..fits], &mut |line| log.output(line)),
                Place::None => return fits < bytes.len(),
            }
            let unfinished = self.lines.unfinished();
            if !unfinished.is_empty() {
                self.is_unfinished = true;
                log.unfinished(self.stream, &unfinished);
            }
        }
        fits < bytes.len()
    }

    fn end_unfinished(&mut self, log: &dyn Log) {
        if std::mem::take(&mut self.is_unfinished) {
            log.unfinished(self.stream, "");
        }
    }

    /// Keeps bytes up to the bound. Returns the number of those that count as written.
    fn keep(&mut self, bytes: &[u8], bytes_max: u64, keeps_end: bool) -> usize {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        if !keeps_end || self.stream == Stream::Stderr {
            let fits = bytes_max.saturating_sub(self.kept.len()).min(bytes.len());
            self.kept.extend(&bytes[..fits]);
            return fits;
        }
        self.kept.extend(bytes);
        let excess = self.kept.len().saturating_sub(bytes_max);
        self.kept.drain(..excess);
        self.missing += excess as u64;
        bytes.len()
    }
}

fn to_log(log: &dyn Log, stream: Stream, line: &str) {
    if stream == Stream::Stdout || !is_noise(line) {
        log.line(stream, line);
    }
}

/// The place of lines beside the kept bytes.
enum Place {
    Log,
    /// The output of the job, in logs that take it.
    Output,
    None,
}

fn place(stream: Stream, watch: &Watch<'_>, log: &dyn Log) -> Place {
    match stream {
        Stream::Stderr => Place::Log,
        Stream::Stdout if !watch.is_of_job => Place::Log,
        Stream::Stdout if log.wants_output() => Place::Output,
        Stream::Stdout => Place::None,
    }
}
