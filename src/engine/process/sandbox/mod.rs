//! The sandbox of children: what a process may touch and use up, held by the kernel alone.
//!
//! A [`Sandbox`] is made once per engine. Per child it gives a [`Cell`], which the child shuts
//! itself into between `fork` and `exec`: a session of its own, no descriptors but its own, no
//! privileges, limits, Landlock for files, ports and signals, seccomp for system calls. No helper
//! program, no namespace, no privilege of the daemon is needed.

mod confine;
mod files;
mod limits;
mod policy;
mod support;
mod syscalls;

pub(super) use confine::{reap, spawn};
pub use limits::Limit;
pub(super) use limits::hit as limit_hit;
pub use support::Support;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use seccompiler::BpfProgram;

use self::limits::Limits;
use self::policy::Policy;
use super::child::Spec;
use crate::config::{Require, SalConfig, SandboxConfig};

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

    /// What one child shuts itself into: it may run its program, and its home is its own.
    ///
    /// # Errors
    /// The kernel cannot make the rules, or holds less than is required.
    pub(super) fn cell(&self, spec: &Spec<'_>) -> io::Result<Cell> {
        if let Some(refusal) = self.refusal() {
            return Err(io::Error::other(refusal));
        }
        let rules = match &self.policy {
            Some(policy) => files::rules(policy, spec)?,
            None => None,
        };
        let (confined, filter) = (self.policy.is_some(), self.filter.clone());
        Ok(Cell { confined, limits: self.limits, rules, filter })
    }
}

/// What one child shuts itself into.
#[derive(Debug)]
pub(super) struct Cell {
    /// Whether it gives up its privileges.
    confined: bool,
    limits: Limits,
    /// The rules for files, ports and signals, which only the kernel reads.
    rules: Option<OwnedFd>,
    filter: Option<Arc<BpfProgram>>,
}
