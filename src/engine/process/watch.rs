//! Watches a running child: its pipes, its channel, its deadline, its space on disks, its processes and
//! requests to stop; afterwards the output of its orphaned processes.

mod answers;
mod channel;
mod disk_use;
mod job_use;
mod lines;
mod patience;
mod pipe;
mod settings;

pub(super) use lines::{LineSplitter, without_noise};
pub(crate) use settings::{Ended, Watch};

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags};
use nix::unistd::Pid;

use self::channel::Channel;
use self::job_use::JobUse;
use self::patience::Patience;
use self::pipe::Pipe;
use super::start::{Pipes, Run, Spec};
use crate::engine::{Failure, Stream};
use crate::sandbox::{Limit, pidfd, poll_until};

/// The maximum number of processes that are named.
const HOLDERS_MAX: usize = 5;

/// A running child, with all that it writes.
#[derive(Debug)]
pub(super) struct WatchedChild<'a> {
    /// Readable once the child has exited.
    exited: OwnedFd,
    stdout: Pipe,
    stderr: Pipe,
    channel: Option<Channel>,
    /// The child's ends of the pipes. Each that closed before the child has exited would wake this thread without need.
    write_ends: Vec<PipeWriter>,
    exceeds: bool,
    job_use: JobUse<'a>,
}

/// An event of a running child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchEvent {
    Exited,
    /// It has to be ended for this reason.
    MustEnd(Ended),
}

#[derive(Debug)]
pub(crate) struct ChildOutput {
    /// Standard output, or the end of it.
    pub(crate) stdout: Vec<u8>,
    /// The bytes of standard output before that end.
    pub(crate) stdout_missing: u64,
    /// The start of standard error, up to the bound.
    pub(crate) stderr: Vec<u8>,
    /// The end of standard error, as text of at most 4 KiB.
    pub(crate) stderr_tail: String,
    /// The output that the child reported on its channel.
    pub(crate) reported: Option<String>,
    /// The meaning of its end, as it said there.
    pub(crate) asked: Option<Failure>,
    /// The maximum memory of its process that was measured while it ran.
    pub(crate) memory_seen_bytes: u64,
}

impl<'a> WatchedChild<'a> {
    pub(super) fn new(
        pid: Pid,
        run: Run,
        pipes: Pipes,
        spec: &Spec<'a>,
        watch: &Watch<'_>,
    ) -> io::Result<Self> {
        let Pipes { stdout, stderr, channel, answers } = pipes;
        let mut write_ends = vec![stdout.write_end, stderr.write_end];
        let channel = match (channel, answers) {
            (Some(ends), Some(answers)) => {
                write_ends.push(ends.write_end);
                Some(Channel::new(ends.read_end, answers.write_end, watch.output_bytes_max)?)
            }
            _ => None,
        };
        Ok(Self {
            exited: pidfd(pid)?,
            stdout: Pipe::new(stdout.read_end, Stream::Stdout)?,
            stderr: Pipe::new(stderr.read_end, Stream::Stderr)?,
            channel,
            write_ends,
            exceeds: false,
            job_use: JobUse::new(pid, run, spec.home, spec.sandbox),
        })
    }

    /// Waits for a change or `until`, and reads the output. Orphans may hold pipes open after the child has exited.
    pub(super) fn next(
        &mut self,
        watch: &Watch<'_>,
        cancelled: BorrowedFd<'_>,
        until: Instant,
    ) -> io::Result<Option<WatchEvent>> {
        let now = Instant::now();
        if let Some(limit) = self.job_use.exceeded(now) {
            return Ok(Some(WatchEvent::MustEnd(Ended::Exceeded(limit))));
        }
        if now >= watch.deadline {
            return Ok(Some(WatchEvent::MustEnd(Ended::Timeout)));
        }
        let until = self.job_use.next.map_or(until, |at| at.min(until)).min(watch.deadline);
        let has_exited = self.wait(Some(cancelled), until)?;
        self.read(watch);
        if self.exceeds {
            return Ok(Some(WatchEvent::MustEnd(Ended::Exceeded(Limit::Output))));
        }
        if has_exited {
            return Ok(Some(WatchEvent::Exited));
        }
        Ok(watch.cancel.requested().map(|reason| WatchEvent::MustEnd(Ended::Stopped(reason))))
    }

    /// Waits like [`WatchedChild::next`] for a child that is being ended, without limits. Returns whether it has exited.
    pub(super) fn exits(&mut self, watch: &Watch<'_>, until: Instant) -> io::Result<bool> {
        let has_exited = self.wait(None, until)?;
        self.read(watch);
        Ok(has_exited)
    }

    /// Reads the output of processes that outlive the child, such as `tee`, until all
    /// have closed it. Gives up once they had the time until `until`, or were silent in it for too long (`patience.rs`),
    /// by the deadline, and on a request to stop that was not there before; without `cancelled`, which is of a child
    /// that is being ended, by `until`. Returns the names of processes that still hold it.
    pub(super) fn drain(
        &mut self,
        watch: &Watch<'_>,
        cancelled: Option<BorrowedFd<'_>>,
        until: Instant,
    ) -> io::Result<Vec<String>> {
        self.write_ends.clear();
        let latest = if cancelled.is_some() { watch.deadline } else { until };
        let mut patience: Option<Patience> = None;
        loop {
            let before = self.bytes();
            self.read(watch);
            let outputs = [&self.stdout.reader, &self.stderr.reader];
            let held: Vec<_> = outputs.iter().filter_map(|reader| reader.end.as_ref()).collect();
            if held.is_empty() {
                return Ok(Vec::new());
            }
            let now = Instant::now();
            let activity = self.job_use.activity();
            let grace = until.saturating_duration_since(now);
            let patience = patience.get_or_insert_with(|| Patience::new(grace, now, activity));
            patience.count(now, self.bytes() > before, activity);
            let is_cancelled = cancelled.and(watch.cancel.requested()).is_some();
            let is_over = patience.is_over() || now >= latest || self.exceeds || is_cancelled;
            if is_over || self.job_use.exceeded(now).is_some() {
                let held: Vec<_> = held.iter().map(|end| end.as_raw_fd()).collect();
                return Ok(self.job_use.holders(&held, HOLDERS_MAX));
            }
            let ends = patience.next().min(latest);
            let ends = self.job_use.next.map_or(ends, |at| at.min(ends));
            let open = held.iter().map(|end| end.as_fd()).chain(cancelled);
            let mut waits: Vec<_> = open.map(|end| PollFd::new(end, PollFlags::POLLIN)).collect();
            poll_until(&mut waits, ends)?;
        }
    }

    /// The bytes of output that were read.
    fn bytes(&self) -> u64 {
        self.stdout.reader.bytes + self.stderr.reader.bytes
    }

    fn wait(&self, cancelled: Option<BorrowedFd<'_>>, until: Instant) -> io::Result<bool> {
        let pipes = [&self.stdout.reader, &self.stderr.reader].into_iter();
        let pipes = pipes.chain(self.channel.as_ref().map(|channel| &channel.reader));
        let pipes = pipes.filter_map(|reader| reader.end.as_ref().map(AsFd::as_fd));
        let all = std::iter::once(self.exited.as_fd()).chain(cancelled).chain(pipes);
        let mut waits: Vec<_> = all.map(|wait| PollFd::new(wait, PollFlags::POLLIN)).collect();
        poll_until(&mut waits, until)?;
        Ok(waits[0].any().unwrap_or(false))
    }

    fn read(&mut self, watch: &Watch<'_>) {
        self.exceeds |= self.stdout.read(watch);
        self.stderr.read(watch);
        let Some(channel) = &mut self.channel else { return };
        channel.read(watch.log);
        self.exceeds |= channel.is_too_large();
    }

    /// Reads the rest of a dead child's output. Returns it, and whether the output is too large.
    pub(super) fn finish(mut self, watch: &Watch<'_>) -> (ChildOutput, bool) {
        // More than the largest pipe holds.
        const ROUNDS: usize = 16;
        self.write_ends.clear();
        for _ in 0..ROUNDS {
            self.read(watch);
        }
        self.stdout.close(watch);
        self.stderr.close(watch);
        if let Some(channel) = &mut self.channel {
            channel.close(watch.log);
            self.exceeds |= channel.is_too_large();
        }
        let exceeds = self.exceeds;
        let (stdout, stderr) = (self.stdout.output, self.stderr.output);
        let (reported, asked) = self.channel.map(Channel::into_reported).unwrap_or_default();
        let written = ChildOutput {
            stdout: stdout.kept.into(),
            stdout_missing: stdout.missing,
            stderr: stderr.kept.into(),
            stderr_tail: stderr.tail.text(),
            reported,
            asked,
            memory_seen_bytes: self.job_use.memory_seen_bytes,
        };
        (written, exceeds)
    }
}
