//! The rules of Landlock: which files, which TCP ports, and nobody else's signals and sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};
use rustix::fs::{Mode, OFlags, Stat, fstat, open, stat};

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

/// Returns the rules for one child; `None` where the kernel has no Landlock.
///
/// # Errors
/// The kernel cannot make them.
pub(super) fn rules(
    policy: &Policy,
    program: &Path,
    home: &Path,
    more: &[PathBuf],
) -> io::Result<Option<OwnedFd>> {
    let own = || {
        shared(policy)?
            .add_rules(path_beneath_rules([program], read_rights()))?
            .add_rules(path_beneath_rules(more, read_rights()))?
            .add_rules(path_beneath_rules([home], own_rights()))
    };
    Ok(own().map_err(io::Error::other)?.into())
}

/// The rules that all children of a policy have.
fn shared(policy: &Policy) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?;
    if policy.network != Network::Open {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    if policy.own_signals {
        ruleset = ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    }
    let mut created = ruleset.create()?;
    let mut held = held().lock().unwrap_or_else(PoisonError::into_inner);
    for (held, access) in held.iter_mut() {
        if let Some(file) = held.current() {
            created = created.add_rule(PathBeneath::new(file, *access))?;
        }
    }
    drop(held);
    let mut created = created
        .add_rules(path_beneath_rules(&policy.read, read_rights()))?
        .add_rules(path_beneath_rules(&policy.write, own_rights()))?;
    if let Network::Ports(ports) = &policy.network {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(created)
}

/// To look at files, and to run them.
fn read_rights() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

/// Everything but the making of devices.
fn own_rights() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
}

/// A file of the system that is kept open, as every child has a rule for it: to open it is dearer
/// than to see that it is still the same.
struct Held {
    path: PathBuf,
    /// The file, if it is there, with the numbers of its device and itself.
    file: Option<(OwnedFd, (u64, u64))>,
}

impl Held {
    /// What the path leads to now: the system replaces some of these while the daemon runs.
    fn current(&mut self) -> Option<BorrowedFd<'_>> {
        let there = stat(&self.path).map(|data| identity(&data)).ok();
        let held = self.file.as_ref().map(|(_, identity)| *identity);
        if there.is_none() || there != held {
            self.file = there.and_then(|_| Self::open(&self.path));
        }
        self.file.as_ref().map(|(file, _)| file.as_fd())
    }

    fn open(path: &Path) -> Option<(OwnedFd, (u64, u64))> {
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let identity = identity(&fstat(&file).ok()?);
        Some((file, identity))
    }
}

fn identity(data: &Stat) -> (u64, u64) {
    (data.st_dev, data.st_ino)
}

/// What every child may touch of the system, and how.
type System = Mutex<Vec<(Held, BitFlags<AccessFs>)>>;

fn held() -> &'static System {
    static HELD: OnceLock<System> = OnceLock::new();
    HELD.get_or_init(|| {
        let look = AccessFs::ReadFile | AccessFs::ReadDir;
        let device = AccessFs::ReadFile | AccessFs::WriteFile;
        let programs = PROGRAMS.iter().map(|path| (PathBuf::from(path), read_rights()));
        let system = SYSTEM.iter().map(|path| (PathBuf::from(path), look));
        let devices = DEVICES.iter().map(|path| (PathBuf::from(path), device));
        let settings = python_settings().into_iter().map(|path| (path, look));
        let all = programs.chain(system).chain(devices).chain(settings);
        Mutex::new(all.map(|(path, access)| (Held { path, file: None }, access)).collect())
    })
}

/// Debian's Python reads its site's settings at every start: `/etc/python3.11`.
fn python_settings() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    let of_python =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"python3"));
    of_python.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_file_is_the_one_that_its_path_leads_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let mut held = Held { path: path.clone(), file: None };
        let mut number = || {
            let identity = held.current().map(|file| identity(&fstat(file).expect("open")));
            let expected = stat(&path).ok().map(|data| super::identity(&data));
            assert_eq!(identity, expected);
            identity
        };
        assert_eq!(number(), None);
        std::fs::write(&path, "a").expect("written");
        let first = number();
        assert_eq!(number(), first);
        std::fs::write(folder.path().join("new"), "b").expect("written");
        std::fs::rename(folder.path().join("new"), &path).expect("replaced");
        assert_ne!(number(), first);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(number(), None);
    }
}
