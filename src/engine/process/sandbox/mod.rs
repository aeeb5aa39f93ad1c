//! The sandbox of children: what a process may touch and use up, held by the kernel alone.
//!
//! A [`Sandbox`] is made once per engine. Per child it gives a [`Cell`], which the child shuts
//! itself into before its program begins: a session of its own, no descriptors but its own, no
//! privileges, limits, Landlock for files, ports and signals, seccomp for system calls. No helper
//! program, no namespace, no privilege of the daemon is needed.

mod confine;
mod files;
mod limits;
mod policy;
mod search;
mod support;
mod syscalls;

pub(super) use confine::{Program, reap, spawn};
pub use limits::Limit;
pub(super) use limits::hit as limit_hit;
pub use support::Support;

use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::fcntl_dupfd_cloexec;
use seccompiler::BpfProgram;

use self::limits::Limits;
use self::policy::Policy;
use crate::config::{Require, SalConfig, SandboxConfig};

/// Below this are the numbers of the standard descriptors and of the channel of progress.
const FIRST_FREE: i32 = 10;

/// What the children of one engine are shut into.
#[derive(Debug, Clone)]
pub struct Sandbox {
    policy: Option<Policy>,
    limits: Limits,
    require: Require,
    /// The most bytes in a child's own folder; zero sets no bound.
    disk_bytes_max: u64,
    /// What its system calls go through, made once: no child needs another.
    filter: Option<Arc<BpfProgram>>,
    support: Support,
}

impl Sandbox {
    /// For the children of a script type.
    pub fn of_type(config: &SandboxConfig) -> Self {
        let policy = config.enabled.then(|| Policy::of_type(config));
        let limits = if config.enabled { Limits::of(config) } else { Limits::default() };
        let disk_bytes_max = if config.enabled { config.disk } else { 0 };
        Self::new(policy, limits, config.require, disk_bytes_max)
    }

    /// For the commands of SAL, which may do what its functions may.
    pub fn of_sal(config: &SalConfig) -> Self {
        Self::new(Policy::of_sal(config), Limits::default(), Require::Basic, 0)
    }

    fn new(policy: Option<Policy>, limits: Limits, require: Require, disk_bytes_max: u64) -> Self {
        let support = Support::of_this_kernel();
        let filter = policy.as_ref().filter(|_| support.seccomp);
        let filter = filter.and_then(|policy| syscalls::filter(policy, support)).map(Arc::new);
        Self { policy, limits, require, disk_bytes_max, filter, support }
    }

    /// Why nothing may run in it here: the kernel holds less than is required.
    pub fn refusal(&self) -> Option<String> {
        self.policy.as_ref()?;
        self.support.refusal(self.require)
    }

    /// What holds here, in one line.
    pub fn summary(&self) -> String {
        match &self.policy {
            None => "no sandbox".to_owned(),
            Some(policy) => self.support.summary(policy),
        }
    }

    /// The most bytes that may be in a child's own folder; none if there is no bound.
    pub(super) fn disk_bytes_max(&self) -> Option<u64> {
        Some(self.disk_bytes_max).filter(|bytes| *bytes > 0)
    }

    /// The limits it sets, as far as the end of a child tells of them.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What one child shuts itself into: it may run `program`, `home` is its own, and it may read
    /// `more`.
    ///
    /// # Errors
    /// The kernel cannot make the rules, or holds less than is required.
    pub(super) fn cell(&self, program: &Path, home: &Path, more: &[PathBuf]) -> io::Result<Cell> {
        if let Some(refusal) = self.refusal() {
            return Err(io::Error::other(refusal));
        }
        let rules = match &self.policy {
            Some(policy) => files::rules(policy, program, home, more)?,
            None => None,
        };
        // Its number must not be one that the child gives to something else before it is used.
        let rules = rules.map(|rules| fcntl_dupfd_cloexec(rules, FIRST_FREE)).transpose()?;
        let (confined, filter) = (self.policy.is_some(), self.filter.clone());
        let privileged = self.support.privileged;
        Ok(Cell { confined, privileged, limits: self.limits, rules, filter })
    }
}

/// What one child shuts itself into.
#[derive(Debug)]
pub(super) struct Cell {
    /// Whether it gives up its privileges.
    confined: bool,
    /// Whether it has any.
    privileged: bool,
    limits: Limits,
    /// The rules for files, ports and signals, which only the kernel reads.
    rules: Option<OwnedFd>,
    filter: Option<Arc<BpfProgram>>,
}

impl Cell {
    /// The rules that it holds itself to, for a child that no `exec` starts.
    pub(super) fn rules(&self) -> Option<BorrowedFd<'_>> {
        self.rules.as_ref().map(AsFd::as_fd)
    }
}

/// For children that no `exec` starts: they are told what to shut themselves into.
impl Sandbox {
    /// Whether they give up their privileges.
    pub(super) fn is_confined(&self) -> bool {
        self.policy.is_some()
    }

    /// Their limits, as the numbers of `setrlimit(2)`: which, soft, hard; -1 is none.
    pub(super) fn limit_numbers(&self) -> impl Iterator<Item = (u32, i64, i64)> {
        let number = |limit: Option<u64>| limit.map_or(-1, |n| i64::try_from(n).unwrap_or(-1));
        let limits = self.limits.list().into_iter().flatten();
        limits.map(move |(kind, limit)| (kind as u32, number(limit.current), number(limit.maximum)))
    }

    /// Their filter of system calls, as the kernel takes it, in hexadecimal digits.
    pub(super) fn filter_hex(&self) -> Option<String> {
        let filter = self.filter.as_ref()?;
        let mut hex = String::with_capacity(filter.len() * 16);
        for step in filter.iter() {
            let [c0, c1] = step.code.to_ne_bytes();
            let [k0, k1, k2, k3] = step.k.to_ne_bytes();
            for byte in [c0, c1, step.jt, step.jf, k0, k1, k2, k3] {
                let _ = write!(hex, "{byte:02x}");
            }
        }
        Some(hex)
    }
}
