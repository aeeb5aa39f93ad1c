//! The files of a configuration as another user may read them: a check by root finds what the daemon
//! would not be able to read.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Gid, User, getegid, geteuid, getgrouplist, getgroups};

use super::files::{DEFAULT_FILE, drop_in_folders, drop_ins, toml_files};
use super::schema::Config;
use super::types::TypeConfig;

/// The folders of Hero, whose owner, group and mode it may advise to change.
const OWN_FOLDERS: [&str; 5] =
    ["/etc/hero", "/var/lib/hero", "/var/log/hero", "/var/cache/hero", "/run/hero"];
/// The folders of systemd's credentials, which reach a unit by systemd: what its user may read there means nothing.
const CREDENTIAL_STORES: [&str; 6] = [
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/run/credstore",
    "/run/credentials",
    "/usr/lib/credstore",
    "/usr/lib/credstore.encrypted",
];

/// A user by its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReader {
    name: String,
    uid: u32,
    gids: Vec<u32>,
    /// True if modes are no obstacle.
    is_privileged: bool,
}

impl FileReader {
    /// Looks a user up, with its groups; `None` if it does not exist.
    pub fn of(name: &str) -> Option<Self> {
        let user = User::from_name(name).ok().flatten()?;
        let groups = CString::new(name).ok().and_then(|name| getgrouplist(&name, user.gid).ok());
        let mut gids: Vec<u32> = groups.iter().flatten().map(|gid| gid.as_raw()).collect();
        gids.push(user.gid.as_raw());
        let (uid, is_privileged) = (user.uid.as_raw(), user.uid.is_root());
        Some(Self { name: name.to_owned(), uid, gids, is_privileged })
    }

    /// Returns the user of this process as its sandboxed children are: without privileges, root's too.
    pub fn without_privileges() -> Self {
        let groups = getgroups().unwrap_or_default().into_iter().chain([getegid()]);
        let (uid, gids) = (geteuid().as_raw(), groups.map(Gid::as_raw).collect());
        Self { name: uid.to_string(), uid, gids, is_privileged: false }
    }

    /// Returns true if owner, group and mode of a file or folder give this user all rights of `needed`, as
    /// the digits of a mode: 4 reads, 2 writes, 1 executes or enters.
    pub fn may(&self, path: &Path, needed: u32) -> bool {
        fs::metadata(path).is_ok_and(|found| self.has(&found, needed))
    }

    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns why this user cannot read a file, or enter one of its folders, by owner, group and mode;
    /// `None` if it can, if the file does not exist, or if it is a credential of systemd. Access lists of the file system
    /// are not read.
    pub(super) fn obstacle(&self, file: &Path) -> Option<String> {
        const READ: u32 = 4;
        const ENTER: u32 = 1;
        // The links on the way lead to the file that is read.
        let file = fs::canonicalize(file).ok()?;
        if CREDENTIAL_STORES.iter().any(|store| file.starts_with(store)) {
            return None;
        }
        let folders = file.ancestors().skip(1).collect::<Vec<_>>();
        let folders = folders.into_iter().rev().map(|folder| (folder, ENTER));
        let is_folder = file.is_dir();
        let needed = if is_folder { READ | ENTER } else { READ };
        folders.chain([(file.as_path(), needed)]).find_map(|(path, needed)| {
            let found = fs::metadata(path).ok()?;
            (!self.has(&found, needed)).then(|| self.describe(path, &found, &file))
        })
    }

    fn has(&self, of: &Metadata, needed: u32) -> bool {
        let shift = match of {
            of if self.uid == of.uid() => 6,
            of if self.gids.contains(&of.gid()) => 3,
            _ => 0,
        };
        self.is_privileged || of.mode() >> shift & needed == needed
    }

    /// `path` is the file, or the folder that is in its way. What is not Hero's stays as narrow as it is.
    fn describe(&self, path: &Path, found: &Metadata, file: &Path) -> String {
        let (name, mode) = (&self.name, found.mode() & 0o7777);
        let (doing, right) = if found.is_dir() { ("enter", "0750") } else { ("read", "0640") };
        let remedy = if OWN_FOLDERS.iter().any(|own| path.starts_with(own)) {
            let path = path.display();
            format!("run: chown root:{name} {path}, chmod {right} {path}")
        } else {
            format!(
                "put a copy of {} into /etc/hero, for root and the group {name}",
                file.display()
            )
        };
        format!("user {name} cannot {doing} {} (mode {mode:04o}); {remedy}", path.display())
    }
}

impl Config {
    /// Returns why a user cannot read the files of this configuration, one reason for each file.
    /// `explicit` is the file of this configuration if it is not the default one.
    pub fn unreadable_by(&self, reader: &FileReader, explicit: Option<&Path>) -> Vec<String> {
        let file = explicit.unwrap_or(Path::new(DEFAULT_FILE));
        let mut files = vec![file.to_owned()];
        files.extend(drop_in_folders(file));
        files.extend(drop_ins(file).unwrap_or_default());
        files.push(self.supervisor.cron_dir.clone());
        files.extend(toml_files(&self.supervisor.cron_dir).unwrap_or_default());
        files.push(self.supervisor.scripts_dir.clone());
        files.extend(toml_files(&self.supervisor.scripts_dir).unwrap_or_default());
        let redis = &self.redis;
        let secrets =
            [&redis.password_file, &redis.tls_ca_file, &redis.tls_cert_file, &redis.tls_key_file];
        files.extend(secrets.into_iter().chain([&self.trace.headers_file]).flatten().cloned());
        let hooks = self.types.values().flat_map(TypeConfig::hook_files);
        files.extend(hooks.map(Path::to_owned));
        let mut obstacles: Vec<String> =
            files.iter().filter_map(|file| reader.obstacle(file)).collect();
        // A folder may be in the way of several files.
        obstacles.dedup();
        obstacles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn mode_owner_and_group_decide_who_reads_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        set_mode(folder.path(), 0o755);
        let file = folder.path().join("hero.toml");
        fs::write(&file, "").expect("written");
        let own = fs::metadata(&file).expect("a file");
        let reader = |uid, gids: &[u32]| FileReader {
            name: "hero".to_owned(),
            uid,
            gids: gids.to_vec(),
            is_privileged: uid == 0,
        };
        let (stranger, strangers) = (own.uid() + 1, own.gid() + 1);
        let cases = [
            (0o600, reader(stranger, &[own.gid()]), false),
            (0o640, reader(stranger, &[own.gid()]), true),
            (0o640, reader(stranger, &[strangers]), false),
            (0o644, reader(stranger, &[strangers]), true),
            // The bits of the group count for its members, also where others have more.
            (0o604, reader(stranger, &[own.gid()]), false),
            (0o000, reader(0, &[]), true),
        ];
        for (mode, reader, reads) in cases {
            set_mode(&file, mode);
            assert_eq!(reader.obstacle(&file).is_none(), reads, "{mode:o} {reader:?}");
        }
        set_mode(&file, 0o644);
        set_mode(folder.path(), 0o744);
        let obstacle = reader(stranger, &[strangers]).obstacle(&file).expect("the folder");
        assert!(obstacle.contains("cannot enter") && obstacle.contains("0744"), "{obstacle}");
    }

    #[test]
    fn modes_count_for_root_without_its_privileges() {
        let folder = tempfile::tempdir().expect("a folder");
        let reader = FileReader::without_privileges();
        assert!(reader.may(folder.path(), 7) && !reader.may(&folder.path().join("x"), 0));
        set_mode(folder.path(), 0o077);
        assert!(!reader.may(folder.path(), 4) && !reader.may(folder.path(), 1));
        set_mode(folder.path(), 0o700);
    }

    #[test]
    fn every_file_that_the_daemon_reads_is_checked() {
        let folder = tempfile::tempdir().expect("a folder");
        set_mode(folder.path(), 0o755);
        let path = |name: &str| folder.path().join(name);
        for name in ["hero.toml.d", "cron.d"] {
            fs::create_dir(path(name)).expect("a folder");
            set_mode(&path(name), 0o755);
        }
        for name in ["hero.toml", "hero.toml.d/a.toml", "cron.d/b.toml", "secret"] {
            fs::write(path(name), "").expect("written");
            set_mode(&path(name), 0o600);
        }
        let mut config = Config::default();
        config.supervisor.cron_dir = path("cron.d");
        config.redis.password_file = Some(path("secret"));
        let own = fs::metadata(path("secret")).expect("a file");
        let (name, uid, gids) = ("hero".to_owned(), own.uid() + 1, Vec::new());
        let reader = FileReader { name, uid, gids, is_privileged: false };
        let found = config.unreadable_by(&reader, Some(&path("hero.toml")));
        assert_eq!(found.len(), 4, "{found:?}");
        let named = format!("{}", path("hero.toml.d/a.toml").display());
        assert!(found[1].contains(&format!("put a copy of {named} into /etc/hero")), "{found:?}");
        assert!(!found.concat().contains("chown"), "a folder that is not Hero's stays as it is");
    }

    #[test]
    fn only_folders_of_hero_are_opened_by_a_remedy_and_credentials_are_not_judged() {
        let nobody =
            FileReader { name: "hero".to_owned(), uid: 1, gids: Vec::new(), is_privileged: false };
        let found = fs::metadata("/").expect("a folder");
        let file = Path::new("/etc/hero/secrets/db");
        let of_hero = nobody.describe(Path::new("/etc/hero/secrets"), &found, file);
        assert!(
            of_hero.contains("run: chown root:hero /etc/hero/secrets, chmod 0750 "),
            "{of_hero}"
        );
        for folder in ["/etc", "/etc/ssl/private", "/srv/hero"] {
            let other = nobody.describe(Path::new(folder), &found, file);
            assert!(!other.contains("chown") && !other.contains("chmod"), "{other}");
        }
    }

    #[test]
    fn users_of_the_system_are_found_with_their_groups() {
        let root = FileReader::of("root").expect("every system has one");
        assert!(root.uid == 0 && root.gids.contains(&0), "{root:?}");
        assert_eq!(FileReader::of("no-such-user-of-hero"), None);
    }
}
