//! A child: a program with its arguments, its environment and its sandbox, and what it is once it was started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use super::registry::{MARK, Registered, Run};
use crate::sandbox::{Allowance, JobGroup, Launch, Restrictions, Sandbox};

/// The number of the channel in the child: the first after the standard descriptors.
pub(in crate::process) const CHANNEL_NUMBER: &str = "3";
/// The environment variables that hold this number, and the one on which the child reads answers.
pub(super) const CHANNEL: [(&str, &str); 2] = [("HERO_FD", CHANNEL_NUMBER), ("HERO_FD_IN", "4")];

/// A program to run. Its environment holds nothing but `env`.
#[derive(Debug, Clone)]
pub(crate) struct Spec<'a> {
    pub(crate) program: PathBuf,
    /// Its arguments, without its own name.
    pub(crate) args: Vec<OsString>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
    /// Its private folder, which it may write in.
    pub(crate) home: &'a Path,
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) stdin: Option<&'a File>,
    /// The paths that it may read in addition to the sandbox's.
    pub(crate) read: &'a [PathBuf],
}

impl Spec<'_> {
    pub(super) fn restrictions(&self) -> io::Result<Restrictions> {
        self.sandbox.restrictions(&self.program, self.home, self.read)
    }

    /// Records what it may do; `None` without a sandbox.
    pub(in crate::process) fn allowance(&self) -> Option<Allowance> {
        self.sandbox.allowance(&self.program, self.home, self.read)
    }

    /// Returns the program with the mark of its run, and with the numbers of its channel if it has one.
    pub(super) fn launch<'a>(
        &'a self,
        run: Run,
        mark: &'a OsStr,
        has_channel: bool,
        descriptors: &'a [BorrowedFd<'a>],
    ) -> Launch<'a> {
        let mut env: BTreeMap<&OsStr, &OsStr> =
            self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        env.insert(OsStr::new(MARK), mark);
        if has_channel {
            env.extend(CHANNEL.map(|(name, number)| (OsStr::new(name), OsStr::new(number))));
        }
        Launch {
            file: &self.program,
            args: &self.args,
            env,
            cwd: self.cwd,
            run_number: run.number(),
            descriptors,
        }
    }
}

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

#[derive(Debug)]
pub(in crate::process) struct Pipes {
    pub(in crate::process) stdout: PipeEnds,
    pub(in crate::process) stderr: PipeEnds,
    /// The channel on which a child reports progress and its output.
    pub(in crate::process) channel: Option<PipeEnds>,
    /// Where it reads the answers to what it asks there.
    pub(in crate::process) answers: Option<PipeEnds>,
}

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
