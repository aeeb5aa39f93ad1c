//! Describes what a sandbox allows on this machine, for people.

use super::policy::Network;
use super::support::Support;
use super::syscalls::denied;
use super::{Sandbox, files};

impl Sandbox {
    /// Describes what children may do, as subjects with texts. The first has what this kernel cannot restrict.
    pub fn description(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("sandbox", self.summary())];
        let Some(policy) = &self.policy else { return rows };
        let [programs, system, devices] = files::of_every_child();
        let list = |fixed: &[&str], more: &[std::path::PathBuf]| {
            let more = more.iter().map(|path| path.display().to_string());
            let all: Vec<String> = fixed.iter().map(ToString::to_string).chain(more).collect();
            all.join(", ")
        };
        rows.push(("read and execute", list(programs, &policy.read)));
        rows.push(("read", list(system, &[])));
        rows.push(("read and write", list(devices, &[])));
        rows.push(("write", list(&["the job's own folder"], &policy.write)));
        rows.push(("network", network(&policy.network, self.support)));
        let on = |is_on: bool, key: &str| {
            if is_on { format!("allowed: {key} = true") } else { format!("none: {key} = false") }
        };
        rows.push(("Unix sockets", on(policy.unix_sockets, "unix_sockets")));
        rows.push(("changes of modes", on(policy.chmod, "chmod")));
        let signals = if policy.own_signals { "the job's own processes" } else { "all" };
        rows.push(("signals", signals.to_owned()));
        if self.support.seccomp {
            rows.extend(calls(&denied(policy, self.support)));
        }
        rows
    }
}

fn network(network: &Network, support: Support) -> String {
    match network {
        Network::Open => "TCP, UDP and ping, to this machine too: network = true".to_owned(),
        Network::Closed => "none: network = false".to_owned(),
        Network::Ports(_) if !support.has_ports() => {
            "none: this kernel cannot open single ports, before Linux 6.7".to_owned()
        }
        Network::Ports(ports) => {
            let list: Vec<String> = ports.iter().map(u16::to_string).collect();
            format!("connections to the TCP ports {}", list.join(", "))
        }
    }
}

/// Describes the system calls that are denied with any arguments, by the error that they get.
fn calls(denied: &[(&'static [super::syscalls::Call], i32)]) -> Vec<(&'static str, String)> {
    [
        ("calls not permitted", libc::EPERM),
        ("calls absent", libc::ENOSYS),
        ("calls unsupported", libc::EOPNOTSUPP),
    ]
    .into_iter()
    .map(|(subject, error)| {
        let of_error = denied.iter().filter(|(_, found)| *found == error);
        let names = of_error.flat_map(|(calls, _)| *calls);
        let names: Vec<&str> = names.map(|(_, name)| name.trim_start_matches("SYS_")).collect();
        (subject, names.join(", "))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SandboxConfig;

    #[test]
    fn description_names_what_the_configuration_opens() {
        let config = SandboxConfig {
            read: vec!["/srv/data".into()],
            ports: vec![443],
            chmod: false,
            ..SandboxConfig::default()
        };
        let sandbox = Sandbox {
            support: Support { landlock: 7, seccomp: true, privileged: false },
            ..Sandbox::of_type(&config)
        };
        let rows = sandbox.description();
        let of = |subject: &str| {
            let found = rows.iter().find(|(of, _)| *of == subject);
            found.map(|(_, text)| text.as_str()).unwrap_or_default()
        };
        assert!(of("read and execute").ends_with("/libx32, /srv/data"), "{rows:?}");
        assert!(of("read").contains("/etc/hosts"), "{rows:?}");
        assert_eq!(of("network"), "connections to the TCP ports 443");
        assert_eq!(of("changes of modes"), "none: chmod = false");
        assert!(of("calls not permitted").contains("mount, umount2"), "{rows:?}");
        assert!(of("calls not permitted").contains("fchmodat2"), "{rows:?}");
        assert!(of("calls absent").contains("io_uring_setup"), "{rows:?}");
        let open = Sandbox::of_type(&SandboxConfig { enabled: false, ..config });
        assert_eq!(open.description(), [("sandbox", "no sandbox".to_owned())]);
    }
}
