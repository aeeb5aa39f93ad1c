//! A child that has just been started.

use std::io::{self, PipeReader, PipeWriter};

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
    /// The channel where a child reports progress and its output.
    pub(in crate::process) channel: Option<PipeEnds>,
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
        let channel = if has_channel { Some(pipe()?) } else { None };
        Ok(Self { stdout: pipe()?, stderr: pipe()?, channel })
    }
}
