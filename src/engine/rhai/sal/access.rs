//! What the functions may touch, as `[sal]` of the configuration says. A refusal names the setting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{JobConfig, RhaiLimits, SalConfig};
use crate::engine::ScriptRedis;
use crate::sandbox::Sandbox;

/// What all functions keep to.
#[derive(Debug)]
pub(in crate::engine::rhai) struct Settings {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    run: bool,
    network: bool,
    exec: Vec<PathBuf>,
    /// Whether scripts of the web may be run.
    pub(super) exec_urls: bool,
    /// The Redis that the configuration names, if it does.
    pub(in crate::engine::rhai) redis: Option<Arc<dyn ScriptRedis>>,
    /// The most bytes of one download.
    pub(super) download_bytes_max: u64,
    /// The most bytes of a string, and so of what is read or captured.
    pub(super) bytes_max: u64,
    /// The most elements of an array.
    pub(super) array_len_max: usize,
    /// How long a child may take to end when asked.
    pub(super) kill_grace: Duration,
    /// What commands are shut into, so that they can do no more than the functions.
    pub(super) sandbox: Sandbox,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

impl Settings {
    pub(in crate::engine::rhai) fn new(
        sal: &SalConfig,
        limits: &RhaiLimits,
        job: &JobConfig,
    ) -> Self {
        // A folder that is not there yet counts by its name.
        let real = |folders: &[PathBuf]| -> Vec<PathBuf> {
            let folders = folders.iter();
            folders.map(|folder| real_path(folder).unwrap_or_else(|_| folder.clone())).collect()
        };
        Self {
            read: real(&sal.read),
            write: real(&sal.write),
            run: sal.run,
            network: sal.network,
            exec: real(&sal.exec),
            exec_urls: sal.exec_urls,
            redis: None,
            download_bytes_max: sal.download_size_max,
            bytes_max: limits.string_size_max,
            array_len_max: limits.array_len_max,
            kill_grace: job.kill_grace,
            sandbox: Sandbox::of_sal(sal),
        }
    }

    /// Refuses a path that is neither below an allowed folder nor below the script's own. Links
    /// count by where they lead, but for the last step of what is only named, such as a link that
    /// is deleted: that one is in its folder.
    pub(super) fn check(
        &self,
        path: &Path,
        own: &Path,
        of: Use,
        follow_last: bool,
    ) -> Result<(), String> {
        let (folders, setting) = match of {
            Use::Read => (&self.read, "sal.read"),
            Use::Write => (&self.write, "sal.write"),
        };
        if folders.iter().any(|folder| folder.parent().is_none()) {
            return Ok(());
        }
        let real = if follow_last { real_path(path) } else { real_entry(path) };
        let real = real.map_err(|error| crate::engine::process::reason(&error))?;
        let own = real_path(own).map_err(|error| crate::engine::process::reason(&error))?;
        if folders.iter().chain([&own]).any(|folder| real.starts_with(folder)) {
            return Ok(());
        }
        Err(format!("not allowed: it is below none of the folders of {setting}"))
    }

    /// Refuses a script that is below none of the folders of scripts.
    pub(super) fn check_exec(&self, path: &Path) -> Result<(), String> {
        let real = real_path(path).map_err(|error| crate::engine::process::reason(&error))?;
        if self.exec.iter().any(|folder| real.starts_with(folder)) {
            return Ok(());
        }
        Err("not allowed: it is below none of the folders of sal.exec".to_owned())
    }

    /// Refuses to start programs where the configuration does.
    pub(super) fn check_run(&self) -> Result<(), String> {
        if self.run { Ok(()) } else { Err("not allowed: sal.run is false".to_owned()) }
    }

    /// Refuses to reach other machines where the configuration does.
    pub(super) fn check_network(&self) -> Result<(), String> {
        if self.network { Ok(()) } else { Err("not allowed: sal.network is false".to_owned()) }
    }
}

/// Where a path leads with every link followed. What is not there yet is where it would be made.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads nowhere is not what would be made: what it leads to is.
            match path.read_link() {
                Ok(target) => real_path(&path.parent().unwrap_or(path).join(target)),
                Err(_) => real_entry(path),
            }
        }
        other => other,
    }
}

/// As [`real_path`], but the last step is not followed.
fn real_entry(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(real_path(parent)?.join(name)),
        // The root, or a path that ends in `..`: nothing would be made there.
        _ => path.canonicalize(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path) -> Settings {
        let folders = vec![folder.to_owned()];
        let sal = SalConfig { read: folders.clone(), write: folders, ..SalConfig::default() };
        Settings::new(&sal, &RhaiLimits::default(), &JobConfig::default())
    }

    #[test]
    fn only_what_is_below_the_folders_is_allowed_whatever_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, own) = (folder.path().join("root"), folder.path().join("own"));
        for made in ["root/in", "own", "out"] {
            std::fs::create_dir_all(folder.path().join(made)).expect("made");
        }
        std::os::unix::fs::symlink("../out", root.join("away")).expect("a link");
        std::os::unix::fs::symlink("../out/new", root.join("nowhere")).expect("a link");
        std::os::unix::fs::symlink("loop", root.join("loop")).expect("a link");
        let settings = settings(&root);
        let allowed = |path: PathBuf| settings.check(&path, &own, Use::Write, true).is_ok();
        for path in ["in", "in/new", "in/new/deep", "in/../x", "away/../root/x"] {
            assert!(allowed(root.join(path)), "{path}");
        }
        for path in ["away", "away/x", "nowhere", "in/../../out", "../out", "..", "loop"] {
            assert!(!allowed(root.join(path)), "{path}");
        }
        assert!(allowed(own.join("x")) && !allowed(folder.path().join("own2")));
        let link = settings.check(&root.join("away"), &own, Use::Write, false);
        assert_eq!(link, Ok(()), "a link is in its own folder");
    }
}
