//! A record of what one child may do, to explain its errors after its end. It decides as the
//! kernel does: first the mode of a file, then the rules of the sandbox.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::files::Grant;
use super::policy::{Network, Policy};
use super::support::Support;
use super::syscalls::denied;
use crate::config::FileReader;

const READ: u32 = 4;
const WRITE: u32 = 2;
const EXECUTE: u32 = 1;

/// The rights of one child.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own, or a part of the kernel"
)]
pub struct Allowance {
    /// Files and folders, with their links resolved; `None` if the kernel controls no files.
    grants: Option<Vec<(Grant, PathBuf)>>,
    user: FileReader,
    /// The network as this kernel restricts it.
    pub network: Network,
    /// True if the kernel can open single ports.
    pub has_ports: bool,
    /// True if sockets of other programs on this machine may be used.
    pub unix_sockets: bool,
    pub chmod: bool,
    /// True if signals reach only processes of the job.
    pub own_signals: bool,
    /// The names of the system calls that are denied with any arguments.
    pub denied_calls: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    Read,
    Write,
    Execute,
    /// Creates, removes or renames the entry itself.
    Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The path, with its links resolved.
    pub path: PathBuf,
    /// The refused uses, of those that were asked about; never empty.
    pub uses: Vec<FileUse>,
    pub exists: bool,
    pub is_folder: bool,
    /// False if a use that was asked about is refused by the mode of the file.
    pub is_certain: bool,
}

impl Allowance {
    pub(super) fn new(policy: &Policy, support: Support, grants: Vec<(Grant, Vec<&Path>)>) -> Self {
        let real = |(grant, paths): (Grant, Vec<&Path>)| {
            let paths = paths.into_iter().filter_map(|path| path.canonicalize().ok());
            paths.map(move |path| (grant, path)).collect::<Vec<_>>()
        };
        let controls_files = support.landlock > 0;
        let has_ports = support.has_ports();
        let network = match &policy.network {
            _ if !support.seccomp => Network::Open,
            Network::Ports(_) if !has_ports => Network::Closed,
            network => network.clone(),
        };
        let lists = if support.seccomp { denied(policy, support) } else { Vec::new() };
        let names = lists.into_iter().flat_map(|(calls, _)| calls);
        Self {
            grants: controls_files.then(|| grants.into_iter().flat_map(real).collect()),
            user: FileReader::without_privileges(),
            network,
            has_ports,
            unix_sockets: policy.unix_sockets || !support.seccomp,
            chmod: policy.chmod || !support.seccomp,
            own_signals: policy.own_signals && support.has_scopes(),
            denied_calls: names.map(|(_, name)| name.trim_start_matches("SYS_")).collect(),
        }
    }

    /// Returns the refused uses of a path: those `of` which one was wanted, or of all if that is not known.
    /// `None` if the sandbox refuses none, or only such as the file's mode refuses anyway: the kernel looks
    /// at that first.
    pub fn refused(&self, path: &Path, wanted: Option<FileUse>) -> Option<Refusal> {
        let grants = self.grants.as_deref()?;
        if !path.is_absolute() {
            return None;
        }
        if path.starts_with("/proc") {
            return refused_in_proc(grants, path);
        }
        let (path, exists) = resolved(path)?;
        let enters = |folder: &Path| self.user.may(folder, EXECUTE);
        if !path.ancestors().skip(1).all(enters) {
            return None;
        }
        let (is_folder, is_program) = (path.is_dir(), path.is_file() && is_executable(&path));
        let asked: &[FileUse] = match wanted {
            _ if !exists => &[FileUse::Change],
            Some(FileUse::Change) if !is_folder => &[FileUse::Change, FileUse::Write],
            Some(FileUse::Change) => &[FileUse::Change],
            Some(FileUse::Write) => &[FileUse::Write],
            Some(FileUse::Execute) => &[FileUse::Execute],
            Some(FileUse::Read) => &[FileUse::Read],
            None if is_folder => &[FileUse::Read],
            None if is_program => &[FileUse::Read, FileUse::Write, FileUse::Execute],
            None => &[FileUse::Read, FileUse::Write],
        };
        let (by_mode, rest): (Vec<FileUse>, Vec<FileUse>) =
            asked.iter().partition(|wanted| !self.mode_allows(&path, **wanted));
        let uses: Vec<FileUse> =
            rest.into_iter().filter(|wanted| !rules_allow(grants, &path, *wanted)).collect();
        let is_certain = by_mode.is_empty();
        (!uses.is_empty()).then_some(Refusal { path, uses, exists, is_folder, is_certain })
    }

    fn mode_allows(&self, path: &Path, wanted: FileUse) -> bool {
        match wanted {
            FileUse::Read => self.user.may(path, READ),
            FileUse::Write => self.user.may(path, WRITE),
            FileUse::Execute => self.user.may(path, EXECUTE),
            FileUse::Change => {
                path.parent().is_some_and(|folder| self.user.may(folder, WRITE | EXECUTE))
            }
        }
    }
}

fn rules_allow(grants: &[(Grant, PathBuf)], path: &Path, wanted: FileUse) -> bool {
    let mut above = grants.iter().filter(|(_, granted)| path.starts_with(granted));
    match wanted {
        FileUse::Read => above.next().is_some(),
        FileUse::Write => above.any(|(grant, _)| matches!(grant, Grant::All | Grant::Device)),
        FileUse::Execute => above.any(|(grant, _)| matches!(grant, Grant::All | Grant::Execute)),
        FileUse::Change => above.any(|(grant, granted)| *grant == Grant::All && path != granted),
    }
}

/// Judges a path in `/proc`, whose links and modes depend on the process that looks at them.
fn refused_in_proc(grants: &[(Grant, PathBuf)], path: &Path) -> Option<Refusal> {
    if path.components().any(|part| part.as_os_str() == "..") {
        return None;
    }
    (!rules_allow(grants, path, FileUse::Read)).then(|| Refusal {
        path: path.to_owned(),
        uses: vec![FileUse::Read],
        exists: true,
        is_folder: false,
        is_certain: false,
    })
}

/// Resolves the links of a path, and returns whether it exists. `None` if neither it nor its folder does, or if
/// this process cannot find out.
fn resolved(path: &Path) -> Option<(PathBuf, bool)> {
    match path.canonicalize() {
        Ok(real) => Some((real, true)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            let folder = path.parent()?.canonicalize().ok()?;
            Some((folder.join(path.file_name()?), false))
        }
        Err(_) => None,
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::SandboxConfig;

    const SUPPORT: Support = Support { landlock: 7, seccomp: true, privileged: false };

    /// A folder with `data/x`, `home`, and a link to the former.
    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            for name in ["data", "home", "read"] {
                fs::create_dir(folder.path().join(name)).expect("made");
                fs::write(folder.path().join(name).join("x"), "").expect("written");
            }
            symlink("../data/x", folder.path().join("home/link")).expect("a link");
            Self(folder)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().expect("there").join(path)
        }

        fn refused(&self, path: &str, wanted: Option<FileUse>) -> Option<Refusal> {
            let policy = Policy::of_type(&SandboxConfig {
                read: vec![self.at("read"), "/no/such/folder".into()],
                ..SandboxConfig::default()
            });
            let home = self.at("home");
            let grants = super::super::files::grants(&policy, Path::new("/bin/sh"), &home, &[]);
            Allowance::new(&policy, SUPPORT, grants).refused(&self.at(path), wanted)
        }

        fn set_mode(&self, path: &str, mode: u32) {
            fs::set_permissions(self.at(path), Permissions::from_mode(mode)).expect("a mode");
        }
    }

    #[test]
    fn path_outside_of_the_rules_is_refused_through_a_link_too() {
        let world = World::new();
        for path in ["data/x", "home/link", "home/../data/x"] {
            let refusal = world.refused(path, None).expect(path);
            assert_eq!(refusal.path, world.at("data/x"), "{path}");
            assert_eq!(refusal.uses, [FileUse::Read, FileUse::Write], "{path}");
            assert!(refusal.is_certain && refusal.exists && !refusal.is_folder);
        }
        let refusal = world.refused("data/new", Some(FileUse::Read)).expect("not created");
        assert_eq!((refusal.uses, refusal.exists), (vec![FileUse::Change], false));
        for path in ["home/x", "home/new", "no/such/folder", "home"] {
            assert_eq!(world.refused(path, None), None, "{path}");
        }
    }

    #[test]
    fn granted_folder_refuses_only_writing() {
        let world = World::new();
        assert_eq!(world.refused("read/x", Some(FileUse::Read)), None);
        let refusal = world.refused("read/x", None).expect("read-only");
        assert_eq!(refusal.uses, [FileUse::Write]);
        assert_eq!(world.refused("home", Some(FileUse::Change)).expect("stays").uses.len(), 1);
    }

    #[test]
    fn what_the_mode_refuses_is_not_the_sandbox() {
        let world = World::new();
        world.set_mode("data/x", 0o000);
        assert_eq!(world.refused("data/x", None), None);
        world.set_mode("data/x", 0o400);
        let refusal = world.refused("data/x", None).expect("reading");
        assert_eq!((refusal.uses, refusal.is_certain), (vec![FileUse::Read], false));
        assert_eq!(world.refused("data/x", Some(FileUse::Write)), None);
        assert!(world.refused("data/x", Some(FileUse::Read)).expect("reading").is_certain);
        // Neither below a folder that cannot be entered, nor in a folder that cannot be written.
        world.set_mode("data/x", 0o600);
        world.set_mode("data", 0o500);
        assert_eq!(world.refused("data/new", None), None);
        world.set_mode("data", 0o600);
        assert_eq!(world.refused("data/x", None), None);
        world.set_mode("data", 0o700);
    }

    #[test]
    fn what_the_kernel_cannot_restrict_is_never_refused() {
        let old = Support { landlock: 0, seccomp: false, privileged: false };
        let policy = Policy::of_type(&SandboxConfig { chmod: false, ..SandboxConfig::default() });
        let allowance = Allowance::new(&policy, old, Vec::new());
        assert_eq!(allowance.refused(Path::new("/etc/shadow"), None), None);
        assert!(allowance.network == Network::Open && allowance.denied_calls.is_empty());
        assert!(allowance.unix_sockets && allowance.chmod && !allowance.own_signals);
        let ports = SandboxConfig { ports: vec![443], ..SandboxConfig::default() };
        let of = |landlock| {
            let support = Support { landlock, ..SUPPORT };
            Allowance::new(&Policy::of_type(&ports), support, Vec::new()).network
        };
        assert_eq!((of(3), of(4)), (Network::Closed, Network::Ports(vec![443])));
    }

    #[test]
    fn denied_calls_have_their_names() {
        let of = |chmod| {
            let config = SandboxConfig { chmod, ..SandboxConfig::default() };
            Allowance::new(&Policy::of_type(&config), SUPPORT, Vec::new())
        };
        assert!(of(true).denied_calls.contains(&"mount"));
        assert!(of(true).denied_calls.contains(&"statmount"));
        assert!(!of(true).denied_calls.contains(&"fchmod"));
        assert!(of(false).denied_calls.contains(&"fchmod"));
    }
}
