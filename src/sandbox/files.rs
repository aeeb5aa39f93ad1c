//! Landlock rules: files, TCP ports, and signals and sockets of other processes.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::policy::{Network, Policy};

/// The newest Landlock version whose rights are all handled. An older kernel applies what it can.
pub(super) const NEWEST: ABI = ABI::V8;

const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Files that programs read to start, to resolve names and to learn about the machine; on Debian none is secret.
const SYSTEM: [&str; 47] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/default/locale",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
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
    "/etc/mailcap",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
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
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/var/cache/fontconfig",
];
/// The beginnings of the names of folders in `/etc` with the settings of runtimes.
const RUNTIMES: [&str; 10] =
    ["R", "dotnet", "gemrc", "go", "java", "node", "php", "python3", "ruby", "texmf"];
/// The most files of `/etc` that are checked for that.
const SETTINGS_MAX: usize = 5000;
/// Devices without data of others.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Returns what every child has: the folders of programs, the files that it reads, and the devices.
pub(super) fn of_every_child() -> [&'static [&'static str]; 3] {
    [&PROGRAMS, &SYSTEM, &DEVICES]
}

/// The access that a rule grants to a file, or to all that is below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    Read,
    /// And starting programs.
    Execute,
    Device,
    All,
}

impl Grant {
    fn rights(self) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        match self {
            Self::Read => read,
            Self::Execute => read | AccessFs::Execute,
            Self::Device => AccessFs::ReadFile | AccessFs::WriteFile,
            Self::All => AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar),
        }
    }
}

/// Returns what one child may access. Paths that do not exist grant nothing.
pub(super) fn grants<'a>(
    policy: &'a Policy,
    program: &'a Path,
    home: &'a Path,
    more: &'a [PathBuf],
) -> Vec<(Grant, Vec<&'a Path>)> {
    fn paths(list: &[PathBuf]) -> Vec<&Path> {
        list.iter().map(PathBuf::as_path).collect()
    }
    vec![
        (Grant::Execute, PROGRAMS.map(Path::new).to_vec()),
        (Grant::Read, SYSTEM.map(Path::new).to_vec()),
        (Grant::Read, paths(settings_of_runtimes())),
        (Grant::Device, DEVICES.map(Path::new).to_vec()),
        (Grant::Execute, paths(&policy.read)),
        (Grant::All, paths(&policy.write)),
        (Grant::Execute, vec![program]),
        (Grant::Execute, paths(more)),
        (Grant::All, vec![home]),
    ]
}

/// Returns the rules for one child; `None` if the kernel has no Landlock.
pub(super) fn rules(
    policy: &Policy,
    program: &Path,
    home: &Path,
    more: &[PathBuf],
) -> Result<Option<OwnedFd>, RulesetError> {
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
    for (grant, paths) in grants(policy, program, home, more) {
        created = created.add_rules(path_beneath_rules(paths, grant.rights()))?;
    }
    if let Network::Ports(ports) = &policy.network {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(created.into())
}

/// Returns the folders in `/etc` of runtimes, such as `/etc/java-17-openjdk`, which are read when they start.
fn settings_of_runtimes() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| open_settings(Path::new("/etc")))
}

/// Returns the entries of a folder with the name of a runtime that only root may change and in which everybody may read
/// everything: what holds a file for few may hold secrets.
fn open_settings(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        RUNTIMES.iter().any(|of| name.as_encoded_bytes().starts_with(of.as_bytes()))
    });
    let mut left = SETTINGS_MAX;
    named.map(|entry| entry.path()).filter(|path| is_open(path, &mut left)).collect()
}

/// Returns whether a file, or all that is below a folder, belongs to root, and is readable by everybody and writable by root
/// alone. Checks `left` of them at most.
fn is_open(path: &Path, left: &mut usize) -> bool {
    let Ok(data) = fs::symlink_metadata(path) else { return false };
    *left = left.saturating_sub(1);
    if data.is_symlink() {
        // Its target has a rule of its own, or none.
        return *left > 0;
    }
    let needed = if data.is_dir() { 0o005 } else { 0o004 };
    let mode = data.mode();
    if *left == 0 || data.uid() != 0 || mode & 0o022 != 0 || mode & needed != needed {
        return false;
    }
    let below = || fs::read_dir(path).into_iter().flatten().flatten();
    !data.is_dir() || below().all(|entry| is_open(&entry.path(), left))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn settings_of_a_runtime_are_read_unless_a_file_among_them_is_for_few() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let etc = tempfile::tempdir().expect("a folder");
        for (file, mode) in [
            ("java-17-openjdk/security/java.security", 0o644),
            ("php/8.2/php.ini", 0o644),
            ("php/8.2/password", 0o640),
            ("R/Renviron", 0o666),
            ("ruby", 0o644),
            ("shadow", 0o644),
        ] {
            let path = etc.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(&path, "").expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        }
        let mut open = open_settings(etc.path());
        open.sort();
        assert_eq!(open, ["java-17-openjdk", "ruby"].map(|name| etc.path().join(name)));
    }
}
