//! The configuration that functions obey: `[osis]`, `[sal]` and the limits of the script type. An
//! error for something that is not allowed names the setting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{JobConfig, SalConfig};
use crate::error::reason;

use crate::engine::ScriptRedis;
use crate::engine::process::with_path;
use crate::sandbox::Sandbox;

#[derive(Debug)]
pub(crate) struct SalSettings {
    /// With the symbolic links of its folders resolved.
    pub(crate) config: SalConfig,
    pub(crate) redis: Option<Arc<dyn ScriptRedis>>,
    pub(crate) kill_grace: Duration,
    /// The sandbox of commands: they may do no more than the functions.
    pub(crate) sandbox: Sandbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    Read,
    Write,
}

impl SalSettings {
    pub(crate) fn new(sal: &SalConfig, job: &JobConfig) -> Self {
        // A folder that does not exist yet is compared by its name.
        let resolved = |folders: &[PathBuf]| -> Vec<PathBuf> {
            let folders = folders.iter();
            folders.map(|folder| real_path(folder).unwrap_or_else(|_| folder.clone())).collect()
        };
        let config = SalConfig {
            read: resolved(&sal.read),
            write: resolved(&sal.write),
            exec: resolved(&sal.exec),
            ..sal.clone()
        };
        Self { config, redis: None, kill_grace: job.kill_grace, sandbox: Sandbox::of_sal(sal) }
    }

    /// Rejects a path outside the allowed folders and the script's own folder. Symbolic links are
    /// resolved, except for the last component without `follow_last`, as for a link that is
    /// deleted itself.
    pub(crate) fn check_path(
        &self,
        path: &Path,
        own: &Path,
        access: FileAccess,
        follow_last: bool,
    ) -> Result<(), String> {
        let (folders, setting) = match access {
            FileAccess::Read => (&self.config.read, "sal.read"),
            FileAccess::Write => (&self.config.write, "sal.write"),
        };
        if folders.iter().any(|folder| folder.parent().is_none()) {
            return Ok(());
        }
        let real = if follow_last { real_path(path) } else { real_entry(path) };
        let real = real.map_err(|error| reason(&error))?;
        let own = real_path(own).map_err(|error| reason(&error))?;
        if folders.iter().chain([&own]).any(|folder| real.starts_with(folder)) {
            return Ok(());
        }
        let folder = if real.is_dir() { &real } else { real.parent().unwrap_or(&real) };
        let key = with_path(setting.trim_start_matches("sal."), folders, folder);
        Err(format!(
            "not allowed: the path is outside the folders of {setting}; [sal] {key} would allow it"
        ))
    }

    pub(crate) fn check_exec(&self, path: &Path) -> Result<(), String> {
        let real = real_path(path).map_err(|error| reason(&error))?;
        if self.config.exec.iter().any(|folder| real.starts_with(folder)) {
            return Ok(());
        }
        Err("not allowed: the script is outside the folders of sal.exec".to_owned())
    }

    pub(crate) fn check_run(&self) -> Result<(), String> {
        if self.config.run { Ok(()) } else { Err(is_false("run")) }
    }

    pub(crate) fn check_network(&self) -> Result<(), String> {
        if self.config.network { Ok(()) } else { Err(is_false("network")) }
    }
}

fn is_false(key: &str) -> String {
    format!("not allowed: sal.{key} is false; [sal] {key} = true would allow it")
}

/// Resolves the links of a path. One that does not exist resolves to where it would be created.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Creating through a dangling link creates its target.
            match path.read_link() {
                Ok(target) => real_path(&path.parent().unwrap_or(path).join(target)),
                Err(_) => real_entry(path),
            }
        }
        other => other,
    }
}

/// Resolves a path like [`real_path`], except for its last component.
fn real_entry(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(real_path(parent)?.join(name)),
        // The root, or a path that ends in `..`: nothing can be created there.
        _ => path.canonicalize(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path) -> SalSettings {
        let folders = vec![folder.to_owned()];
        let sal = SalConfig { read: folders.clone(), write: folders, ..SalConfig::default() };
        SalSettings::new(&sal, &JobConfig::default())
    }

    #[test]
    fn path_is_allowed_only_inside_the_folders_with_links_resolved() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, own) = (folder.path().join("root"), folder.path().join("own"));
        for made in ["root/in", "own", "out"] {
            std::fs::create_dir_all(folder.path().join(made)).expect("made");
        }
        std::os::unix::fs::symlink("../out", root.join("away")).expect("a link");
        std::os::unix::fs::symlink("../out/new", root.join("nowhere")).expect("a link");
        std::os::unix::fs::symlink("loop", root.join("loop")).expect("a link");
        let settings = settings(&root);
        let allowed =
            |path: PathBuf| settings.check_path(&path, &own, FileAccess::Write, true).is_ok();
        for path in ["in", "in/new", "in/new/deep", "in/../x", "away/../root/x"] {
            assert!(allowed(root.join(path)), "{path}");
        }
        for path in ["away", "away/x", "nowhere", "in/../../out", "../out", "..", "loop"] {
            assert!(!allowed(root.join(path)), "{path}");
        }
        assert!(allowed(own.join("x")) && !allowed(folder.path().join("own2")));
        let link = settings.check_path(&root.join("away"), &own, FileAccess::Write, false);
        assert_eq!(link, Ok(()), "a link is in its own folder");
    }
}
