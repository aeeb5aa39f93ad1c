//! The private folder of one job, which exists while the job runs, below a folder of this process.
//!
//! The folder of the process is locked while the process lives. So a process knows at its start which
//! folders belong to dead processes, and removes them.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use tracing::{info, warn};

use crate::engine::process::tree;

/// The start of the name of a process's folder.
pub(in crate::process) const OF_PROCESS: &str = "hero-jobs-";
/// The working directory of a script, in the folder of its job.
pub(super) const HOME: &str = "home";
/// The folder beside it, for what Hero adds.
const OWN: &str = "hero";

/// A folder that only this user can enter. Dropping it removes it with its content.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The folder that it is in.
    of_process: Arc<ProcessFolder>,
}

impl Scratch {
    /// Creates a folder in the runtime directory that systemd gives this service, or else in the
    /// directory for temporary files.
    ///
    /// # Errors
    /// Any error of creating the folder.
    pub fn new() -> io::Result<Self> {
        let of_process = ProcessFolder::of_this_process()?;
        of_process.repair()?;
        let path = private_folder(&of_process.path, "job-")?;
        Ok(Self { path, of_process })
    }

    /// Returns the folder that it is in, which exists while a value refers to it.
    pub(super) fn of_process(&self) -> Arc<ProcessFolder> {
        Arc::clone(&self.of_process)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the working directory of a script, and the folder for what Hero puts beside it, so that a script
    /// finds only its own files in the former.
    ///
    /// # Errors
    /// Any error of creating them.
    pub(super) fn split(&self) -> io::Result<PathBuf> {
        let home = self.path.join(HOME);
        for folder in [&home, &self.path.join(OWN)] {
            DirBuilder::new().mode(0o700).create(folder)?;
        }
        Ok(home)
    }

    /// Returns the folder for what Hero puts beside the working directory.
    pub(super) fn own(&self) -> PathBuf {
        self.path.join(OWN)
    }

    /// Writes a new file into that folder.
    ///
    /// # Errors
    /// The errors of [`Scratch::file`].
    pub(super) fn own_file(&self, name: &str, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        self.file(format!("{OWN}/{name}"), content)
    }

    /// Writes a new file that only this user can read.
    ///
    /// # Errors
    /// Any error of creating and writing the file, such as a full disk.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(content.as_ref())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The job may have taken the permissions of the folders above away.
        let removed = self.of_process.repair().and_then(|()| tree::remove(&self.path));
        if let Err(error) = removed {
            warn!("cannot remove the job's folder {}: {error}", self.path.display());
        }
    }
}

/// The folder of this process, which holds its jobs' folders. Dropping it removes it.
#[derive(Debug)]
pub(super) struct ProcessFolder {
    path: PathBuf,
    /// The open folder, locked.
    _lock: File,
}

impl ProcessFolder {
    /// Returns the folder of this process, and creates it if no value refers to it.
    ///
    /// # Errors
    /// Any error of creating the folder.
    pub(super) fn of_this_process() -> io::Result<Arc<Self>> {
        static CURRENT: Mutex<Weak<ProcessFolder>> = Mutex::new(Weak::new());
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = current.upgrade() {
            return Ok(folder);
        }
        let created = Arc::new(Self::below(&folder_of_jobs())?);
        *current = Arc::downgrade(&created);
        Ok(created)
    }

    /// Returns the permissions to this user that a job may have taken away.
    fn repair(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), tree::repair)?;
        tree::repair(&self.path)
    }

    fn below(parent: &Path) -> io::Result<Self> {
        tree::repair(parent)?;
        loop {
            let path = private_folder(parent, OF_PROCESS)?;
            // Another process may find it before it is locked, and remove it.
            match File::open(&path) {
                Ok(lock) if lock.try_lock().is_ok() && lock.metadata()?.nlink() > 0 => {
                    return Ok(Self { path, _lock: lock });
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        // The rest of a job's folder is removed by the next process.
        let _ = self.repair();
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// Creates a folder with a free name. Its errors have their numbers, by which `before_start.rs` decides.
fn private_folder(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    const RANDOM_CHARS: usize = 6;
    loop {
        let random: String =
            std::iter::repeat_with(fastrand::alphanumeric).take(RANDOM_CHARS).collect();
        let path = parent.join(format!("{prefix}{random}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the folder that holds the folders of all jobs.
pub fn folder_of_jobs() -> PathBuf {
    parent(std::env::var_os("RUNTIME_DIRECTORY").as_deref())
}

/// Removes the folders of jobs whose daemon has died, on a thread of its own: they may be large.
pub(crate) fn remove_leftovers() {
    let parent = folder_of_jobs();
    let thread = std::thread::Builder::new().name("leftovers".to_owned());
    if let Err(error) = thread.spawn(move || remove_unlocked(&parent)) {
        warn!("cannot start the thread that removes folders of dead processes: {error}");
    }
}

/// Removes the folders of this user below `parent` that no process has locked.
fn remove_unlocked(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(OF_PROCESS.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_own = |data: std::fs::Metadata| data.is_dir() && data.uid() == geteuid().as_raw();
        if !entry.metadata().is_ok_and(is_own) {
            continue;
        }
        // A job may have taken its permissions away.
        let opened = match tree::open_path(&path, Mode::S_IRWXU) {
            Ok(opened) => File::from(opened),
            Err(error) => {
                warn!("cannot remove {}: {error}", path.display());
                continue;
            }
        };
        if opened.try_lock().is_err() {
            continue;
        }
        match tree::remove(&path) {
            Ok(()) => info!("removed {}, which a dead process left", path.display()),
            Err(error) => warn!("cannot remove {}: {error}", path.display()),
        }
    }
}

/// Returns the first absolute path in `RUNTIME_DIRECTORY`, which may list several.
fn parent(runtime: Option<&OsStr>) -> PathBuf {
    runtime
        .and_then(|entries| std::env::split_paths(entries).find(|entry| entry.is_absolute()))
        .unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn the_folder_is_private_and_removed_when_dropped() {
        let scratch = Scratch::new().expect("a folder");
        let file = scratch.file("script.sh", "echo").expect("a file");
        assert_eq!((mode(scratch.path()), mode(&file)), (0o700, 0o600));
        assert_eq!(scratch.path().parent().map(mode), Some(0o700));
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn error_of_a_folder_has_its_number() {
        let error = private_folder(Path::new("/proc/self"), "job-").expect_err("no such place");
        assert!(error.raw_os_error().is_some(), "{error:?}");
    }

    #[test]
    fn only_folders_of_dead_processes_are_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let lives = ProcessFolder::below(parent.path()).expect("a folder");
        let job = private_folder(&lives.path, "job-").expect("a folder");
        let dead = parent.path().join(format!("{OF_PROCESS}dead"));
        let (foreign, kept) = (parent.path().join("other"), parent.path().join("kept"));
        for folder in [&dead.join("job-1/a"), &foreign, &kept] {
            std::fs::create_dir_all(folder).expect("folders");
        }
        let link = parent.path().join(format!("{OF_PROCESS}link"));
        std::os::unix::fs::symlink(&kept, &link).expect("a link");
        std::os::unix::fs::symlink(&kept, dead.join("job-1/link")).expect("a link");
        remove_unlocked(parent.path());
        assert!(!dead.exists());
        assert!(job.exists() && foreign.exists() && kept.exists());
        std::fs::remove_dir(job).expect("removed");
        drop(lives);
        assert_eq!(std::fs::read_dir(parent.path()).expect("listed").count(), 3);
    }

    #[test]
    fn the_first_absolute_runtime_directory_is_the_parent() {
        let of = |value: &str| parent(Some(OsStr::new(value)));
        assert_eq!(of("/run/hero:/run/hero-x"), Path::new("/run/hero"));
        assert_eq!(of(""), std::env::temp_dir());
        assert_eq!(parent(None), std::env::temp_dir());
    }
}
