//! The configuration of a user without root: its file and its folders, by the XDG base directories.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid};
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFolders {
    config: PathBuf,
    state: PathBuf,
    cache: PathBuf,
    /// The folder of sockets, which is there while the user is logged in or lingers.
    runtime: Option<PathBuf>,
}

impl UserFolders {
    /// Returns the files of this process's user. Root has none: it uses the configuration of the machine.
    pub fn of_this_process() -> Option<Self> {
        let uid = Uid::effective();
        if uid.is_root() {
            return None;
        }
        // A shell that no login has started, such as cron's, lacks the variable.
        let runtime = PathBuf::from(format!("/run/user/{uid}"));
        Self::of(|name| std::env::var_os(name), Some(runtime).filter(|folder| folder.is_dir()))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>, runtime: Option<PathBuf>) -> Option<Self> {
        let folder = |name| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let home = folder("HOME")?;
        let hero =
            |name, default: &str| folder(name).unwrap_or_else(|| home.join(default)).join("hero");
        Some(Self {
            config: hero("XDG_CONFIG_HOME", ".config"),
            state: hero("XDG_STATE_HOME", ".local/state"),
            cache: hero("XDG_CACHE_HOME", ".cache"),
            runtime: folder("XDG_RUNTIME_DIR").or(runtime).map(|folder| folder.join("hero")),
        })
    }

    pub fn file(&self) -> PathBuf {
        self.config.join("hero.toml")
    }

    /// Returns that file if it exists, and belongs to the user or root: with `sudo`, the home may be
    /// another user's.
    pub fn own_file(&self) -> Option<PathBuf> {
        let file = self.file();
        let owner = std::fs::metadata(&file).ok()?.uid();
        [0, Uid::effective().as_raw()].contains(&owner).then_some(file)
    }

    /// Returns the defaults of that file that differ from the machine's, as TOML. The Redis comes from the
    /// unit hero-redis.service; the user alone may call the API, and may do everything there.
    pub(super) fn defaults(&self, group: Option<&str>) -> String {
        let mut tables = json!({
            "job": { "log_dir": self.state.join("jobs"), "cache_dir": self.cache },
            "supervisor": {
                "cron_dir": self.config.join("cron.d"), "scripts_dir": self.config.join("scripts"),
            },
            "secrets": { "dir": self.config.join("secrets") },
            "amqp": { "logs": { "spool_dir": self.state.join("spool") } },
            "api": { "listen": [], "group": "", "admin_group": group.unwrap_or_default() },
        });
        if let Some(runtime) = &self.runtime {
            let socket = |name: &str| runtime.join(name).display().to_string();
            tables["api"]["listen"] = json!([format!("unix://{}", socket("api.sock"))]);
            tables["redis"] = json!({ "url": format!("redis+unix://{}", socket("redis.sock")) });
        }
        toml::to_string(&tables).unwrap_or_default()
    }
}

pub(super) fn own_group() -> Option<String> {
    Group::from_gid(Gid::effective()).ok().flatten().map(|group| group.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn folders(variables: &[(&str, &str)]) -> Option<UserFolders> {
        let find = |name: &str| variables.iter().find(|(other, _)| *other == name);
        UserFolders::of(|name| find(name).map(|(_, value)| (*value).into()), None)
    }

    #[test]
    fn folders_are_those_of_the_variables_or_below_the_home() {
        let home = folders(&[("HOME", "/home/ann")]).expect("a home");
        assert_eq!(home.file(), Path::new("/home/ann/.config/hero/hero.toml"));
        assert_eq!(home.state, Path::new("/home/ann/.local/state/hero"));
        assert_eq!(
            (home.cache.as_path(), &home.runtime),
            (Path::new("/home/ann/.cache/hero"), &None)
        );
        let named = folders(&[
            ("HOME", "/home/ann"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_STATE_HOME", "relative"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
        ]);
        let named = named.expect("a home");
        assert_eq!(named.file(), Path::new("/c/hero/hero.toml"));
        assert_eq!(
            named.state,
            Path::new("/home/ann/.local/state/hero"),
            "relative paths do not count"
        );
        assert_eq!(named.runtime, Some("/run/user/7/hero".into()));
        assert_eq!(folders(&[]), None);
        assert_eq!(folders(&[("HOME", "")]), None);
    }

    #[test]
    fn defaults_of_a_user_are_legal_and_below_its_file() {
        let all = [("HOME", "/home/ann"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        let text = folders(&all).expect("a home").defaults(Some("ann"));
        let config = Config::from_toml("h".as_ref(), &text).expect("legal");
        assert_eq!(config.job.log_dir, Path::new("/home/ann/.local/state/hero/jobs"));
        assert_eq!(config.secrets.dir, Path::new("/home/ann/.config/hero/secrets"));
        assert_eq!(config.redis.redacted_url(), "redis+unix:///run/user/7/hero/redis.sock");
        assert_eq!(config.api.listen[0].to_string(), "unix:///run/user/7/hero/api.sock");
        assert_eq!((config.api.group.as_str(), config.api.admin_group.as_str()), ("", "ann"));
        let bare = folders(&all[..1]).expect("a home").defaults(None);
        let bare = Config::from_toml("h".as_ref(), &bare).expect("legal");
        assert!(bare.api.listen.is_empty() && bare.redis == Config::default().redis);
    }
}
