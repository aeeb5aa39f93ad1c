//! The description of a child: a program with its arguments, its environment and its sandbox.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::registry::{MARK, Run};
use crate::sandbox::{Allowance, Launch, Restrictions, Sandbox};

/// The number of the channel in the child: the first after the standard descriptors.
pub(in crate::process) const CHANNEL_NUMBER: &str = "3";
/// The environment variables that hold this number, and the one on which the child reads answers.
pub(super) const CHANNEL: [(&str, &str); 2] = [("HERO_FD", CHANNEL_NUMBER), ("HERO_FD_IN", "4")];

/// A program to run. Its environment holds nothing but `env`.
#[derive(Debug, Clone)]
pub(crate) struct Spec<'a> {
    /// The file of the program.
    pub(crate) program: PathBuf,
    /// Its arguments, without its own name.
    pub(crate) args: Vec<OsString>,
    /// Its complete environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// Its working directory.
    pub(crate) cwd: &'a Path,
    /// Its private folder, which it may write in.
    pub(crate) home: &'a Path,
    pub(crate) sandbox: &'a Sandbox,
    /// Its standard input, if it has one.
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
