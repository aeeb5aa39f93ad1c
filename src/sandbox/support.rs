//! The parts of the sandbox that this kernel can enforce.

use std::sync::OnceLock;

use seccompiler::TargetArch;

use super::confine;
use super::policy::{Network, Policy};
use crate::config::Require;

/// The first Landlock version with TCP ports: Linux 6.7.
const ABI_PORTS: u32 = 4;
/// The first Landlock version with signals and abstract sockets: Linux 6.12.
const ABI_SCOPES: u32 = 6;
/// The first Landlock version with `truncate(2)`: Linux 6.2.
const ABI_TRUNCATE: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// The Landlock version; zero if there is none.
    pub landlock: u32,
    /// True if system calls can be filtered, on a processor whose call numbers are known.
    pub seccomp: bool,
    /// True if this process has capabilities to drop. A systemd unit without any may not be allowed the call.
    pub(super) privileged: bool,
}

/// Returns whether this process has capabilities; true if that cannot be determined.
fn is_privileged() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.is_none_or(|set| set.trim().bytes().any(|digit| digit != b'0'))
}

/// Returns this processor as the filter's compiler names it; `None` if it does not know its calls.
pub(super) fn target() -> Option<TargetArch> {
    TargetArch::try_from(std::env::consts::ARCH).ok()
}

impl Support {
    pub fn of_this_kernel() -> Self {
        static SUPPORT: OnceLock<Support> = OnceLock::new();
        *SUPPORT.get_or_init(|| {
            let (landlock, has_seccomp) = confine::kernel_support();
            Self {
                landlock,
                seccomp: target().is_some() && has_seccomp,
                privileged: is_privileged(),
            }
        })
    }

    pub fn level(self) -> Require {
        match self {
            Self { landlock: 0, .. } | Self { seccomp: false, .. } => Require::None,
            Self { landlock: ABI_SCOPES.., .. } => Require::Full,
            Self { .. } => Require::Basic,
        }
    }

    pub fn has_ports(self) -> bool {
        self.landlock >= ABI_PORTS
    }

    pub(super) fn has_scopes(self) -> bool {
        self.landlock >= ABI_SCOPES
    }

    /// Returns what a script can do in the sandbox `basic`; `None` at any other level.
    pub fn reach(self) -> Option<&'static str> {
        (self.level() == Require::Basic).then_some(
            "a script can send signals to the daemon and to other jobs, which Linux 6.12 or later prevents",
        )
    }

    pub(super) fn has_truncate(self) -> bool {
        self.landlock >= ABI_TRUNCATE
    }

    /// Returns why scripts that require this level may not run here.
    pub(super) fn refusal(self, require: Require) -> Option<String> {
        if self.level() >= require {
            return None;
        }
        let missing = match self {
            Self { landlock: 0, .. } => {
                "the kernel has no Landlock (5.13 or later with `landlock` among lsm=, and no \
                 container that forbids its system calls)"
            }
            Self { seccomp: false, .. } => "system calls cannot be filtered by seccomp here",
            Self { .. } => {
                "Landlock does not control signals and abstract sockets before Linux 6.12"
            }
        };
        Some(format!(
            "sandbox.require is \"{}\", but {missing}; to run scripts with a weaker sandbox, lower \
             sandbox.require",
            require.as_str()
        ))
    }

    pub(super) fn summary(self, policy: &Policy) -> String {
        let mut gaps = Vec::new();
        if self.landlock == 0 {
            gaps.push("files");
        }
        if !self.seccomp {
            gaps.push("system calls, network");
        }
        if self.landlock < ABI_SCOPES {
            gaps.push("signals to the daemon and to other jobs of the same user");
        }
        if matches!(policy.network, Network::Ports(_)) && !self.has_ports() {
            gaps.push("single ports (the network is closed instead)");
        }
        let gaps = if gaps.is_empty() {
            String::new()
        } else {
            format!("; not enforced: {}", gaps.join(", "))
        };
        format!("{} (Landlock {}{gaps})", self.level().as_str(), self.landlock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(landlock: u32) -> Support {
        Support { landlock, seccomp: true, privileged: false }
    }

    #[test]
    fn kernel_with_less_than_required_is_rejected_with_what_it_lacks() {
        use Require::{Basic, Full, None};
        let blind = Support { landlock: 7, seccomp: false, privileged: false };
        for (support, require, said) in [
            (support(0), Basic, "the kernel has no Landlock"),
            (support(0), Full, "the kernel has no Landlock"),
            (support(2), Full, "before Linux 6.12"),
            (blind, Basic, "cannot be filtered"),
        ] {
            let refusal = support.refusal(require).expect("it lacks something");
            assert!(refusal.contains(said), "{refusal}");
            assert!(refusal.contains(require.as_str()), "{refusal}");
        }
        for (support, require) in
            [(support(0), None), (support(1), Basic), (support(6), Full), (blind, None)]
        {
            assert_eq!(support.refusal(require), Option::None);
        }
    }

    #[test]
    fn reach_of_a_script_is_reported_for_kernels_without_scopes_alone() {
        for (landlock, told) in [(0, false), (2, true), (5, true), (6, false)] {
            let reach = support(landlock).reach();
            assert_eq!(reach.is_some_and(|text| text.contains("signals")), told, "{landlock}");
        }
    }

    #[test]
    fn summary_names_what_is_not_enforced() {
        let config = crate::config::SandboxConfig { ports: vec![443], ..Default::default() };
        let policy = Policy::of_type(&config);
        assert_eq!(support(7).summary(&policy), "full (Landlock 7)");
        let old = support(2).summary(&policy);
        assert!(old.contains("signals") && old.contains("single ports"), "{old}");
        let none = Support { landlock: 0, seccomp: false, privileged: false }.summary(&policy);
        assert!(none.contains("files, system calls"), "{none}");
    }
}
