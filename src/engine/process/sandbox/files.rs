//! The rules of Landlock: which files, which TCP ports, and nobody else's signals and sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::policy::{Network, Policy};

/// The newest Landlock that this knows all the rights of. An older kernel holds what it can.
pub(super) const NEWEST: ABI = ABI::V8;

/// Where the system's programs and their libraries are.
const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What programs read to start, to find names and to know the machine; nothing that is secret on
/// a machine as Debian sets it up.
const SYSTEM: [&str; 37] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/random",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];
/// Devices that hold nothing of anybody.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The rules for one child; none where the kernel has no Landlock. Every file is looked up anew:
/// the system replaces some of them while the daemon runs.
///
/// # Errors
/// The kernel cannot make them.
pub(super) fn rules(
    policy: &Policy,
    program: &Path,
    home: &Path,
    more: &[PathBuf],
) -> io::Result<Option<OwnedFd>> {
    let ruleset = build(policy, program, home, more).map_err(io::Error::other)?;
    Ok(ruleset.into())
}

fn build(
    policy: &Policy,
    program: &Path,
    home: &Path,
    more: &[PathBuf],
) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let write = own_rights();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?;
    if policy.network != Network::Open {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    if policy.own_signals {
        ruleset = ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    }
    let mut created = ruleset
        .create()?
        .add_rules(path_beneath_rules(PROGRAMS, read))?
        .add_rules(path_beneath_rules(SYSTEM, look))?
        .add_rules(path_beneath_rules(python_settings(), look))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules([program], read))?
        .add_rules(path_beneath_rules(more, read))?
        .add_rules(path_beneath_rules(&policy.read, read))?
        .add_rules(path_beneath_rules(&policy.write, write))?
        .add_rules(path_beneath_rules([home], write))?;
    if let Network::Ports(ports) = &policy.network {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(created)
}

/// Everything but the making of devices.
fn own_rights() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
}

/// Debian's Python reads its site's settings at every start: `/etc/python3.11`. Which there are is
/// looked up once.
fn python_settings() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
        let of_python =
            entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"python3"));
        of_python.map(|entry| entry.path()).collect()
    })
}
