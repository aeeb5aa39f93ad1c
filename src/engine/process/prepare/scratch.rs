//! The private folder of one job, which exists while the job runs, below a folder of this process.
//!
//! The folder of the process is locked while the process lives. So a process knows at its start which
//! folders belong to dead processes, and removes them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use tracing::{info, warn};

use crate::engine::process::tree;

/// The start of the name of a process's folder.
pub(in crate::process) const OF_PROCESS: &str = "hero-jobs-";
pub(super) const HOME: &str = "home";
/// The folder beside it, for what Hero adds.
const OWN: &str = "hero";

/// A folder that only this user can enter. Dropping it removes it with its content.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    of_process: Arc<ProcessFolder>,
}

impl Scratch {
    /// Creates a folder in the runtime directory of this service, or else in the directory for temporary files.
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

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the working directory of a script, which has only its own files, and the folder for what Hero adds.
    pub(super) fn split(&self) -> io::Result<PathBuf> {
        let home = self.path.join(HOME);
        for folder in [&home, &self.path.join(OWN)] {
            tree::create_private(folder)?;
        }
        Ok(home)
    }

    /// Returns the folder for what Hero puts beside the working directory.
    pub(super) fn own(&self) -> PathBuf {
        self.path.join(OWN)
    }

    pub(super) fn own_file(&self, name: &str, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        self.file(format!("{OWN}/{name}"), content)
    }

    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        tree::create_file(&path)?.write_all(content.as_ref())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The job may have taken the permissions of the folders above away.
        let removed = self.of_process.repair().and_then(|()| tree::remove(&self.path));
        if let Err(error) = removed {
            warn!("cannot remove the job's folder {}: {error}; trying again", self.path.display());
            left().note(self.path.clone());
        }
    }
}

struct LeftFolders {
    paths: BTreeSet<PathBuf>,
    tried: Option<Instant>,
}

fn left() -> MutexGuard<'static, LeftFolders> {
    static LEFT: Mutex<LeftFolders> =
        Mutex::new(LeftFolders { paths: BTreeSet::new(), tried: None });
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LeftFolders {
    /// The folders that are tried again; the next daemon removes the others.
    const COUNT_MAX: usize = 10_000;
    const AGAIN: Duration = Duration::from_mins(1);

    fn note(&mut self, path: PathBuf) {
        if self.paths.len() < Self::COUNT_MAX {
            self.paths.insert(path);
        }
    }

    fn due(&mut self) -> Vec<PathBuf> {
        let is_early = self.tried.is_some_and(|tried| tried.elapsed() < Self::AGAIN);
        if is_early || self.paths.is_empty() {
            return Vec::new();
        }
        self.tried = Some(Instant::now());
        self.paths.iter().cloned().collect()
    }
}

/// Removes folders that could not be removed before. Returns those that are gone.
fn removed_now(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut gone = paths;
    gone.retain(|path| {
        // From above: the folder of all, of the process, and of the job.
        for folder in [path.parent().and_then(Path::parent), path.parent()].into_iter().flatten() {
            let _ = tree::repair(folder);
        }
        tree::remove(path).is_ok()
    });
    gone
}

/// Returns the number of folders of jobs that could not be removed. Each minute they are tried again, on a thread of its own.
pub fn folders_left() -> u64 {
    let (number, due) = {
        let mut left = left();
        (left.paths.len() as u64, left.due())
    };
    if !due.is_empty() {
        in_background("jobs", move || {
            let gone = removed_now(due);
            let mut left = left();
            left.paths.retain(|path| !gone.contains(path));
        });
    }
    number
}

/// Removes folders `of` something on a thread of its own: they may be large.
fn in_background(of: &str, remove: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("leftovers".to_owned());
    if let Err(error) = thread.spawn(remove) {
        warn!("cannot start the thread that removes folders of {of}: {error}");
    }
}

/// The folder of this process, which holds its jobs' folders. Dropping it removes it.
#[derive(Debug)]
pub(super) struct ProcessFolder {
    path: PathBuf,
    _lock: File,
}

impl ProcessFolder {
    /// Returns the folder of this process, and creates it if no value refers to it.
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

pub fn folder_of_jobs() -> PathBuf {
    parent(std::env::var_os("RUNTIME_DIRECTORY").as_deref())
}

/// Removes the folders of jobs whose daemon has died, on a thread of its own.
pub(crate) fn remove_leftovers() {
    let parent = folder_of_jobs();
    in_background("dead processes", move || remove_unlocked(&parent));
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
        match remove_if_unlocked(&path) {
            Ok(true) => info!("removed {}, which a dead process left", path.display()),
            Ok(false) => {}
            Err(error) => {
                warn!("cannot remove {}: {error}; trying again", path.display());
                left().note(path);
            }
        }
    }
}

/// Removes a folder that no process has locked; returns whether it was one.
fn remove_if_unlocked(path: &Path) -> io::Result<bool> {
    // A job may have taken its permissions away.
    let opened = File::from(tree::open_path(path, Mode::S_IRWXU)?);
    if opened.try_lock().is_err() {
        return Ok(false);
    }
    tree::remove(path).map(|()| true)
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
    fn folder_that_could_not_be_removed_is_counted_and_tried_again() {
        let parent = tempfile::tempdir().expect("a folder");
        let of_process = parent.path().join(format!("{OF_PROCESS}one"));
        let path = of_process.join("job-1");
        std::fs::create_dir(&of_process).expect("a folder");
        let mut left = LeftFolders { paths: BTreeSet::new(), tried: None };
        assert!(left.due().is_empty());
        left.note(path.clone());
        // No folder: that cannot be removed as one.
        std::fs::write(&path, "").expect("a file");
        assert_eq!(left.due(), std::slice::from_ref(&path));
        assert!(left.due().is_empty(), "not at once");
        assert_eq!(removed_now(vec![path.clone()]), [] as [&Path; 0]);
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir_all(path.join("a/b")).expect("folders");
        for folder in [path.join("a"), path.clone(), of_process.clone()] {
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o0)).expect("a mode");
        }
        assert_eq!(removed_now(vec![path.clone()]), std::slice::from_ref(&path));
        assert!(!path.exists() && of_process.exists());
    }

    #[test]
    fn the_first_absolute_runtime_directory_is_the_parent() {
        let of = |value: &str| parent(Some(OsStr::new(value)));
        assert_eq!(of("/run/hero:/run/hero-x"), Path::new("/run/hero"));
        assert_eq!(of(""), std::env::temp_dir());
        assert_eq!(parent(None), std::env::temp_dir());
    }
}
