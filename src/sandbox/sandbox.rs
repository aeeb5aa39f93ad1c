//! The sandbox of child processes: what a process may access and use up, enforced by the kernel.
//!
//! An engine has one [`Sandbox`]. Each child enters it before its program begins: a session of its
//! own, no inherited descriptors, no privileges, limits, Landlock for files, ports and signals,
//! seccomp for system calls. This takes no helper program, no namespace and no privilege.

use hero_config as config;
use hero_proto as proto;

#[cfg(test)]
#[path = "../test_support.rs"]
mod test_support;

mod allowance;
mod cgroups;
mod confine;
mod deadline;
mod describe;
mod files;
mod limits;
mod policy;
mod rights;
mod search;
mod support;
mod syscalls;
mod usage;

pub use allowance::{Allowance, FileUse, Refusal};
pub use cgroups::{JobGroup, divide_cgroup, lacks_groups};
pub use confine::{
    Launch, Restrictions, give_back_freed_memory, pidfd, reap, set_run_number, spawn,
};
pub use deadline::poll_until;
pub use limits::{Limit, limit_hit};
pub use policy::Network;
pub use rights::Rights;
pub use support::Support;
pub use usage::Usage;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::resource::RLIM_INFINITY;
use seccompiler::BpfProgram;

use self::limits::{limits_of, without_limits};
use self::policy::Policy;
use crate::config::{Require, SalConfig, SandboxConfig};
use crate::proto::text::hexadecimal;

#[derive(Debug, Clone)]
pub struct Sandbox {
    policy: Option<Policy>,
    /// Its limits, the limits of its job, and the level that the kernel must enforce.
    pub limits: SandboxConfig,
    filter: Option<Arc<BpfProgram>>,
    support: Support,
}

impl Sandbox {
    pub fn of_type(config: &SandboxConfig) -> Self {
        if config.enabled {
            Self::new(Some(Policy::of_type(config)), config.clone())
        } else {
            Self::new(None, without_limits(config))
        }
    }

    /// The sandbox of commands of SAL: these may access what its functions may.
    pub fn of_sal(config: &SalConfig) -> Self {
        let limits = SandboxConfig { require: Require::Basic, ..SandboxConfig::default() };
        Self::new(Policy::of_sal(config), without_limits(&limits))
    }

    fn new(policy: Option<Policy>, limits: SandboxConfig) -> Self {
        let support = Support::of_this_kernel();
        let filter = policy.as_ref().filter(|_| support.seccomp);
        let filter = filter.and_then(|policy| syscalls::filter(policy, support)).map(Arc::new);
        Self { policy, limits, filter, support }
    }

    /// Returns why nothing may run in it here: the kernel enforces less than is required.
    pub fn refusal(&self) -> Option<String> {
        self.policy.as_ref()?;
        self.support.refusal(self.limits.require)
    }

    pub fn summary(&self) -> String {
        let Some(policy) = &self.policy else { return "no sandbox".to_owned() };
        let groups = cgroups::bounds_jobs(&self.limits).then(|| match cgroups::outlook() {
            Ok(()) => "; each job in a control group of its own".to_owned(),
            Err(reason) => format!("; started from here, jobs have no control groups: {reason}"),
        });
        format!("{}{}", self.support.summary(policy), groups.unwrap_or_default())
    }

    /// Creates the restrictions of one child: it may run `program`, write in `home` and read `more`.
    /// Fails if the kernel cannot create the rules, or enforces less than is required.
    pub fn restrictions(
        &self,
        program: &Path,
        home: &Path,
        more: &[PathBuf],
    ) -> io::Result<Restrictions> {
        if let Some(refusal) = self.refusal() {
            return Err(io::Error::other(refusal));
        }
        let rules = match &self.policy {
            Some(policy) => files::rules(policy, program, home, more).map_err(io::Error::other)?,
            None => None,
        };
        Ok(Restrictions {
            confined: self.policy.is_some(),
            privileged: self.support.privileged,
            limits: limits_of(&self.limits),
            rules,
            filter: self.filter.clone(),
        })
    }

    /// Records what a child with such [`Sandbox::restrictions`] may do, to explain its errors; `None` without a sandbox.
    pub fn allowance(&self, program: &Path, home: &Path, more: &[PathBuf]) -> Option<Allowance> {
        let policy = self.policy.as_ref()?;
        Some(Allowance::new(policy, self.support, files::grants(policy, program, home, more)))
    }

    /// Creates the control group of one child and of all that it starts, if they have one.
    pub fn job_group(&self) -> io::Result<Option<JobGroup>> {
        JobGroup::of(&self.limits)
    }
}

/// For children that are forked without `exec` and sandbox themselves.
impl Sandbox {
    pub fn is_confined(&self) -> bool {
        self.policy.is_some()
    }

    /// Their limits as the numbers of `setrlimit(2)`: resource, soft, hard; -1 is infinity.
    pub fn limit_numbers(&self) -> impl Iterator<Item = (u32, i64, i64)> {
        let number = |limit: u64| if limit == RLIM_INFINITY { -1 } else { limit.cast_signed() };
        let limits = limits_of(&self.limits).into_iter().flatten();
        limits.map(move |(resource, soft, hard)| (resource as u32, number(soft), number(hard)))
    }

    /// Their system call filter in the kernel's form, in hexadecimal digits.
    pub fn filter_hex(&self) -> Option<String> {
        let steps = self.filter.as_ref()?.iter().flat_map(|step| {
            let [c0, c1] = step.code.to_ne_bytes();
            let [k0, k1, k2, k3] = step.k.to_ne_bytes();
            [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
        });
        Some(hexadecimal(&steps.collect::<Vec<u8>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_where_the_kernel_enforces_less_than_required() {
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
            let refusal = sandbox.refusal().expect("it lacks something");
            let error = sandbox.restrictions(program, folder.path(), &[]).expect_err("rejected");
            assert_eq!(error.to_string(), refusal);
        }
        let open = Sandbox { support: support(0, false), ..Sandbox::of_sal(&SalConfig::default()) };
        assert_eq!(open.refusal(), None, "there is no sandbox");
    }
}
