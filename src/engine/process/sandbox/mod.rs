//! The sandbox of children: what a process may touch and use up, held by the kernel alone.
//!
//! A [`Sandbox`] is made once per engine. Per child it gives a [`Cell`], which the child shuts
//! itself into before its program begins: a session of its own, no descriptors but its own, no
//! privileges, limits, Landlock for files, ports and signals, seccomp for system calls. No helper
//! program, no namespace, no privilege of the daemon is needed.

mod cgroups;
mod confine;
mod files;
mod limits;
mod own;
mod policy;
mod search;
mod support;
mod syscalls;

pub(super) use cgroups::Lease;
pub use cgroups::enter as divide_cgroup;
pub use confine::give_back_code;
pub(super) use confine::{reap, spawn};
pub use limits::Limit;
pub(super) use limits::hit as limit_hit;
pub use own::Own;
pub use support::Support;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::fcntl_dupfd_cloexec;
use seccompiler::BpfProgram;

use self::cgroups::Cgroups;
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
    /// Bounds for all of a child together with what it starts, where the kernel's groups are ours.
    cgroups: Option<Cgroups>,
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
        let cgroups = Cgroups::of(config).filter(|_| config.enabled);
        Self { cgroups, ..Self::new(policy, limits, config.require, disk_bytes_max) }
    }

    /// For the commands of SAL, which may do what its functions may.
    pub fn of_sal(config: &SalConfig) -> Self {
        Self::new(Policy::of_sal(config), Limits::default(), Require::Basic, 0)
    }

    fn new(policy: Option<Policy>, limits: Limits, require: Require, disk_bytes_max: u64) -> Self {
        let support = Support::of_this_kernel();
        let filter = policy.as_ref().filter(|_| support.seccomp);
        let filter = filter.and_then(|policy| syscalls::filter(policy, support)).map(Arc::new);
        Self { policy, limits, require, disk_bytes_max, cgroups: None, filter, support }
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
            Some(policy) => {
                let whole = self.cgroups.as_ref().map(|_| match cgroups::outlook() {
                    Ok(()) => "; each job in a control group of its own".to_owned(),
                    Err(reason) => {
                        format!("; started from here, jobs have no control groups: {reason}")
                    }
                });
                let whole = whole.unwrap_or_default();
                format!("{}{whole}", self.support.summary(policy))
            }
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

    /// The control group of one child and of all that it starts, if they have one.
    ///
    /// # Errors
    /// Those of making it, with its name.
    pub(super) fn lease(&self) -> io::Result<Option<Lease>> {
        self.cgroups.as_ref().map_or(Ok(None), Cgroups::lease)
    }
}

/// The program of a child.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) file: &'a Path,
    /// Its arguments, without its own name.
    pub(super) args: &'a [OsString],
    /// Its whole environment.
    pub(super) env: BTreeMap<&'a OsStr, &'a OsStr>,
}

/// Where a child starts, and what it gets.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) cwd: &'a Path,
    /// Its descriptors, by their numbers from 0 on. It gets no others.
    pub(super) descriptors: &'a [BorrowedFd<'a>],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_kernel_holds_too_little_nothing_is_started() {
        let on = |support: Support, require| {
            let config = SandboxConfig { require, ..SandboxConfig::default() };
            Sandbox { support, ..Sandbox::of_type(&config) }
        };
        let support = |landlock, seccomp| Support { landlock, seccomp, privileged: false };
        let program = Path::new("/bin/true");
        let folder = tempfile::tempdir().expect("a folder");
        for (support, require) in [
            (support(0, true), Require::Basic),
            (support(6, false), Require::Basic),
            (support(2, true), Require::Full),
        ] {
            let sandbox = on(support, require);
            let refusal = sandbox.refusal().expect("it holds too little");
            let error = sandbox.cell(program, folder.path(), &[]).expect_err("nothing may run");
            assert_eq!(error.to_string(), refusal);
        }
        let open = Sandbox { support: support(0, false), ..Sandbox::of_sal(&SalConfig::default()) };
        assert_eq!(open.refusal(), None, "there is no sandbox to hold");
    }
}
