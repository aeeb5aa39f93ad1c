//! A child that has just been started.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};

use nix::unistd::Pid;

use super::registry::{Registered, Run};
use crate::sandbox::JobGroup;

/// A child that has just been started, first of its process group.
#[derive(Debug)]
pub(in crate::process) struct Started {
    pub(in crate::process) pid: Pid,
    pub(in crate::process) run: Run,
    pub(in crate::process) registered: Registered,
    /// The control group of the job, if jobs have any.
    pub(in crate::process) group: Option<JobGroup>,
    pub(in crate::process) pipes: Pipes,
    /// It began in the memory of the daemon.
    pub(in crate::process) is_cold: bool,
}

/// The pipes of a child.
#[derive(Debug)]
pub(in crate::process) struct Pipes {
    pub(in crate::process) stdout: PipeEnds,
    pub(in crate::process) stderr: PipeEnds,
    /// The channel on which a child reports progress and its output.
    pub(in crate::process) channel: Option<PipeEnds>,
    /// Where it reads the answers to what it asks there.
    pub(in crate::process) answers: Option<PipeEnds>,
}

/// Both ends of a pipe.
#[derive(Debug)]
pub(in crate::process) struct PipeEnds {
    pub(in crate::process) read_end: PipeReader,
    pub(in crate::process) write_end: PipeWriter,
}

impl Pipes {
    pub(super) fn open(has_channel: bool) -> io::Result<Self> {
        let pipe = || io::pipe().map(|(read_end, write_end)| PipeEnds { read_end, write_end });
        let (channel, answers) =
            if has_channel { (Some(pipe()?), Some(pipe()?)) } else { (None, None) };
        Ok(Self { stdout: pipe()?, stderr: pipe()?, channel, answers })
    }

    /// Returns the child's ends of the channel, in the order of their numbers.
    pub(super) fn of_channel(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let channel = self.channel.iter().map(|ends| ends.write_end.as_fd());
        channel.chain(self.answers.iter().map(|ends| ends.read_end.as_fd()))
    }
}
