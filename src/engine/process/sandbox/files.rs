//! The rules of Landlock: which files, which TCP ports, and nobody else's signals and sockets.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use std::{fmt, io};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};
use rustix::fs::{Mode, OFlags, Stat, fstat, open, stat};

use super::policy::{Network, Policy};
use crate::engine::process::demand::{Demand, is_fresh};

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

/// Makes the rules of the children of one policy. What is the same for all of them takes most of the
/// time: where jobs come one after the other, it is made between them.
#[derive(Default)]
pub(super) struct Maker {
    state: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    ahead: Option<(Instant, RulesetCreated)>,
    demand: Demand,
}

impl Maker {
    /// The rules for one child; none where the kernel has no Landlock.
    ///
    /// # Errors
    /// The kernel cannot make them.
    pub(super) fn rules(
        &self,
        policy: &Policy,
        program: &Path,
        home: &Path,
        more: &[PathBuf],
    ) -> io::Result<Option<OwnedFd>> {
        let ahead = self.take(Instant::now());
        let own = || {
            let shared = ahead.map_or_else(|| shared(policy), Ok)?;
            shared
                .add_rules(path_beneath_rules([program], read_rights()))?
                .add_rules(path_beneath_rules(more, read_rights()))?
                .add_rules(path_beneath_rules([home], own_rights()))
        };
        Ok(own().map_err(io::Error::other)?.into())
    }

    /// Makes what is the same for all for the next child, where one may be expected soon.
    pub(super) fn make_ahead(&self, policy: &Policy) {
        let mut made = self.lock();
        let is_wanted = made.demand.ends(Instant::now()) && made.ahead.is_none();
        drop(made);
        if !is_wanted {
            return;
        }
        // Should it fail, the next child will say so.
        if let Ok(rules) = shared(policy) {
            self.lock().ahead = Some((Instant::now(), rules));
        }
    }

    fn take(&self, now: Instant) -> Option<RulesetCreated> {
        let mut made = self.lock();
        made.demand.comes(now);
        made.ahead.take().filter(|(at, _)| is_fresh(*at, now)).map(|(_, rules)| rules)
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maker").finish_non_exhaustive()
    }
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
    use crate::engine::process::demand::FRESH;

    #[test]
    fn rules_are_made_ahead_for_children_that_come_one_after_the_other_and_do_not_grow_old() {
        let policy = Policy::of_type(&crate::config::SandboxConfig::default());
        if shared(&policy).is_ok_and(|rules| Option::<OwnedFd>::from(rules).is_none()) {
            return;
        }
        let maker = Maker::default();
        let is_ahead = || maker.lock().ahead.is_some();
        assert!(maker.take(Instant::now()).is_none());
        maker.make_ahead(&policy);
        assert!(!is_ahead(), "one child says nothing of a second");
        // A busy machine may take too long for that at first.
        let until = Instant::now() + std::time::Duration::from_mins(1);
        let made = loop {
            assert!(Instant::now() < until, "none is made ahead");
            let _ = maker.take(Instant::now());
            maker.make_ahead(&policy);
            let made = maker.lock().ahead.as_ref().map(|(at, _)| *at);
            if let Some(made) = made {
                break made;
            }
        };
        assert!(maker.take(made + FRESH).is_none(), "too old");
        assert!(!is_ahead());
        maker.lock().ahead = shared(&policy).ok().map(|rules| (made, rules));
        assert!(maker.take(made + FRESH / 2).is_some(), "it is new");
        assert!(!is_ahead());
    }

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
