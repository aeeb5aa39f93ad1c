//! Small file systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::needs;

/// A small disk in memory.
pub(crate) struct Disk {
    pub(crate) folder: PathBuf,
}

impl Disk {
    /// Mounts it; `None` where this user may not, and the test is skipped.
    pub(crate) fn new(folder: PathBuf) -> Option<Self> {
        Self::with(folder, "size=2m,mode=0700")
    }

    #[expect(clippy::disallowed_methods, reason = "a file system is mounted by a program")]
    pub(crate) fn with(folder: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir(&folder).expect("a folder");
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let done = Command::new("mount").args(mount).arg(&folder).output().expect("mount runs");
        needs("mount", || done.status.success()).then_some(Self { folder })
    }

    pub(crate) fn is_empty(&self) -> bool {
        is_empty(&self.folder)
    }
}

/// Returns whether no job has left anything: there is at most the empty folder of the actor.
pub(crate) fn is_empty(folder: &Path) -> bool {
    let mut of_actors = fs::read_dir(folder).expect("it is there").flatten();
    of_actors.all(|of_actor| {
        fs::read_dir(of_actor.path()).is_ok_and(|mut of_jobs| of_jobs.next().is_none())
    })
}

impl Drop for Disk {
    #[expect(clippy::disallowed_methods, reason = "a file system is unmounted by a program")]
    fn drop(&mut self) {
        // Lazily: processes may still use it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).output();
    }
}
