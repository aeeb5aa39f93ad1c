//! A cache on disk for things that are built once from the text of scripts: compiled programs and Python
//! environments.
//!
//! An entry is a folder `KIND/NAME`. Its file `complete` holds the size of the entry, and the time
//! of that file is the time of the last use. The file `NAME.lock` beside it is locked exclusively to
//! build or remove the entry, and shared by each job that uses it. So an entry is built once even if
//! several processes ask for it at the same time, and it is never removed while a job uses it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use tracing::warn;

use crate::engine::process::tree;
use crate::engine::{Cancel, Failure};

/// The file of an entry that is written last.
const COMPLETE: &str = "complete";
/// The file with the text that the entry was built from; the name of an entry is only its hash.
const MADE_OF: &str = "made-of";
/// The interval between tries of a lock that another process may hold.
const TRY_EVERY_MS: u8 = 20;
/// The depth to which an entry's permissions are checked: its packages, whose own files are too many.
const REPAIRED_DEEP_MAX: usize = 4;
/// Folders of an entry nested deeper than this are not measured.
const FOLDERS_DEEP_MAX: usize = 64;

/// A folder of entries that only this user can read.
#[derive(Debug, Clone)]
pub(super) struct BuildCache {
    folder: PathBuf,
    size_max_bytes: u64,
}

/// A complete entry. It is not removed while this value exists.
#[derive(Debug)]
pub(in crate::process) struct CacheEntry {
    pub(in crate::process) path: PathBuf,
    _in_use: File,
}

/// The end of waiting and building: a requested stop or a deadline.
#[derive(Clone, Copy)]
pub(in crate::process) struct Until<'a> {
    pub(in crate::process) cancel: &'a Cancel,
    pub(in crate::process) deadline: Instant,
}

impl Until<'_> {
    /// Waits for a moment, or fails if the end has come.
    fn wait(self) -> Result<(), Failure> {
        if let Some(reason) = self.cancel.requested() {
            return Err(Failure::Stopped(reason));
        }
        if Instant::now() >= self.deadline {
            return Err(Failure::Timeout);
        }
        let cancelled = self.cancel.descriptor();
        let cancelled =
            cancelled.map_err(|error| Failure::before_start("cannot wait for a stop", &error))?;
        let mut waits = [PollFd::new(cancelled.as_fd(), PollFlags::POLLIN)];
        // An error, such as an interruption, only makes the next try earlier.
        let _ = poll(&mut waits, TRY_EVERY_MS);
        Ok(())
    }
}

impl BuildCache {
    pub(super) fn new(folder: &Path, size_max_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), size_max_bytes }
    }

    /// Returns the entry that is built from `made_of`; `build` fills its folder if the entry does not exist.
    /// Fails by `build`, by a stop or the deadline while another process builds it, or if a folder cannot be written.
    pub(super) fn entry(
        &self,
        kind: &str,
        made_of: &str,
        until: Until<'_>,
        build: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<CacheEntry, Failure> {
        let at = |error: io::Error| {
            let folder = self.folder.display();
            Failure::of_machine(format!("cannot use the cache {folder} (job.cache_dir)"), &error)
        };
        let kind_folder = self.folder.join(kind);
        for folder in [&self.folder, &kind_folder] {
            tree::create_private(folder).and_then(|()| tree::repair(folder)).map_err(at)?;
        }
        let folder = kind_folder.join(name_of(made_of));
        let lock_file = folder.with_extension("lock");
        // A missing entry is built below.
        let _ = tree::repair_below(&folder, REPAIRED_DEEP_MAX);
        loop {
            let lock = open_lock(&lock_file).map_err(at)?;
            if lock.try_lock_shared().is_ok()
                && is_current(&lock, &lock_file)
                && is_complete(&folder, made_of)
            {
                return Ok(CacheEntry { path: folder, _in_use: lock });
            }
            // Another process may hold it shared as well: neither would get it exclusively.
            let _ = lock.unlock();
            if lock.try_lock().is_err() {
                until.wait()?;
                continue;
            }
            if !is_current(&lock, &lock_file) || is_complete(&folder, made_of) {
                continue;
            }
            build_in(&folder, made_of, build)?;
            // Another process may lock it between the two steps; it finds a complete entry.
            let shared = lock.unlock().is_ok() && lock.try_lock_shared().is_ok();
            self.prune(&folder);
            if shared && is_complete(&folder, made_of) {
                return Ok(CacheEntry { path: folder, _in_use: lock });
            }
            return self.lock_built(folder, &lock_file, made_of, until).map_err(at);
        }
    }

    /// Waits for the lock of an entry just built, which another process is checking.
    fn lock_built(
        &self,
        folder: PathBuf,
        lock_file: &Path,
        made_of: &str,
        until: Until<'_>,
    ) -> io::Result<CacheEntry> {
        loop {
            let lock = open_lock(lock_file)?;
            if lock.try_lock_shared().is_ok() {
                if is_complete(&folder, made_of) {
                    return Ok(CacheEntry { path: folder, _in_use: lock });
                }
                let size_max = self.size_max_bytes;
                let message = format!("an entry is larger than the limit of {size_max} bytes");
                return Err(io::Error::other(message));
            }
            if until.wait().is_err() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Removes the least recently used entries beyond the limit, except entries in use and `newest`.
    fn prune(&self, newest: &Path) {
        let mut entries = self.entries();
        let mut size: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
        entries.sort_by_key(|entry| entry.used_at);
        for old in entries {
            if size <= self.size_max_bytes {
                return;
            }
            if old.folder != newest && remove(&old.folder) {
                size -= old.size_bytes;
            }
        }
        if size > self.size_max_bytes {
            let folder = self.folder.display();
            warn!("the cache {folder} holds {size} bytes of entries that are all in use");
        }
    }

    fn entries(&self) -> Vec<FoundEntry> {
        let kinds = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        kinds
            .flat_map(|kind| fs::read_dir(kind.path()).into_iter().flatten().flatten())
            .filter_map(|entry| {
                let (folder, complete) = (entry.path(), entry.path().join(COMPLETE));
                let used = complete.metadata().ok()?;
                let size_bytes = fs::read_to_string(&complete).ok()?.trim().parse().ok()?;
                Some(FoundEntry { folder, size_bytes, used_at: (used.mtime(), used.mtime_nsec()) })
            })
            .collect()
    }
}

struct FoundEntry {
    folder: PathBuf,
    size_bytes: u64,
    used_at: (i64, i64),
}

fn build_in(
    folder: &Path,
    made_of: &str,
    build: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unwritable = |error: io::Error| {
        Failure::of_machine(format!("cannot write to the cache {}", folder.display()), &error)
    };
    // A process that died while it built the entry left an incomplete one.
    if folder.exists() {
        tree::remove(folder).map_err(unwritable)?;
    }
    tree::create_private(folder).map_err(unwritable)?;
    let outcome = build(folder).and_then(|()| {
        write_private(&folder.join(MADE_OF), made_of).map_err(unwritable)?;
        let size = size_of(folder, FOLDERS_DEEP_MAX).to_string();
        write_private(&folder.join(COMPLETE), &size).map_err(unwritable)
    });
    if outcome.is_err() {
        let _ = tree::remove(folder);
    }
    outcome
}

/// Returns true if the entry is complete and was built from the same text; marks it as used.
fn is_complete(folder: &Path, made_of: &str) -> bool {
    let Ok(complete) = OpenOptions::new().append(true).open(folder.join(COMPLETE)) else {
        return false;
    };
    if !fs::read_to_string(folder.join(MADE_OF)).is_ok_and(|text| text == made_of) {
        return false;
    }
    let _ = futimens(&complete, &TimeSpec::UTIME_OMIT, &TimeSpec::UTIME_NOW);
    true
}

fn remove(folder: &Path) -> bool {
    let lock_file = folder.with_extension("lock");
    let Ok(lock) = open_lock(&lock_file) else { return false };
    if lock.try_lock().is_err() || !is_current(&lock, &lock_file) {
        return false;
    }
    // The entry becomes incomplete first, in case this process dies in between.
    let removed = fs::remove_file(folder.join(COMPLETE)).is_ok();
    let removed = removed && tree::remove(folder).is_ok();
    let _ = fs::remove_file(&lock_file);
    removed
}

/// Returns false for a lock on a file that has been removed or replaced.
fn is_current(lock: &File, lock_file: &Path) -> bool {
    match (lock.metadata(), lock_file.metadata()) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

fn open_lock(lock_file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    match options.open(lock_file) {
        // A job may have changed the mode of a file of its user.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(lock_file, Permissions::from_mode(0o600))?;
            options.open(lock_file)
        }
        opened => opened,
    }
}

fn write_private(file: &Path, text: &str) -> io::Result<()> {
    io::Write::write_all(&mut tree::create_file(file)?, text.as_bytes())
}

/// Returns two hashes of 64 bits. A collision only costs a build, as the entry holds the text.
fn name_of(made_of: &str) -> String {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, made_of).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", hash(1), hash(2))
}

fn size_of(folder: &Path, depth_left: usize) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, data)| {
            let below = data.is_dir() && depth_left > 0;
            let below = if below { size_of(&path, depth_left - 1) } else { 0 };
            data.blocks() * 512 + below
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use crate::engine::StopReason;

    fn cache(size_max_bytes: u64) -> (tempfile::TempDir, BuildCache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = BuildCache::new(&folder.path().join("cache"), size_max_bytes);
        (folder, cache)
    }

    fn soon(cancel: &Cancel) -> Until<'_> {
        Until { cancel, deadline: Instant::now() + Duration::from_mins(1) }
    }

    fn filled(bytes: usize) -> impl FnOnce(&Path) -> Result<(), Failure> {
        move |folder| {
            fs::write(folder.join("content"), vec![b'x'; bytes]).expect("written");
            Ok(())
        }
    }

    fn never(_: &Path) -> Result<(), Failure> {
        panic!("the entry exists already")
    }

    #[test]
    fn concurrent_requests_build_an_entry_once() {
        let (_folder, cache) = cache(1 << 20);
        let (builds, cancel) = (AtomicUsize::new(0), Cancel::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let entry = cache.entry("kind", "text", soon(&cancel), |folder| {
                        builds.fetch_add(1, Ordering::SeqCst);
                        filled(10)(folder)
                    });
                    let content = entry.expect("an entry").path.join("content");
                    assert_eq!(fs::read(content).expect("read").len(), 10);
                });
            }
        });
        assert_eq!(builds.into_inner(), 1);
    }

    #[test]
    fn cache_whose_permissions_a_job_took_away_serves_the_next() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let entry = cache.entry("kind", "text", soon(&cancel), filled(10)).expect("an entry");
        let folder = entry.path.clone();
        drop(entry);
        let content = folder.join("content");
        let lock = folder.with_extension("lock");
        let all = [&content, &lock, &folder, &cache.folder.join("kind"), &cache.folder];
        for closed in all {
            fs::set_permissions(closed, Permissions::from_mode(0o000)).expect("closed");
        }
        let entry = cache.entry("kind", "text", soon(&cancel), never).expect("the same entry");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o700;
        for folder in [&*cache.folder, &cache.folder.join("kind"), &entry.path] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        assert_eq!(mode(&content), 0o500);
    }

    #[test]
    fn a_failed_build_leaves_no_entry_and_is_retried() {
        let (folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let failed = cache.entry("kind", "text", soon(&cancel), |folder| {
            filled(10)(folder)?;
            Err(Failure::script("no"))
        });
        assert_eq!(failed.expect_err("failed"), Failure::script("no"));
        let left = fs::read_dir(folder.path().join("cache/kind")).expect("a folder");
        assert!(left.flatten().all(|left| left.path().extension().is_some_and(|e| e == "lock")));
        cache.entry("kind", "text", soon(&cancel), filled(1)).expect("built");
    }

    #[test]
    fn the_least_recently_used_entry_is_removed_and_one_in_use_is_kept() {
        let (_folder, cache) = cache(140_000);
        let cancel = Cancel::new();
        let build = |text: &str| cache.entry("kind", text, soon(&cancel), filled(30_000));
        let exists = |text: &str| cache.folder.join("kind").join(name_of(text)).exists();
        let in_use = build("a").expect("built");
        build("b").expect("built");
        build("c").expect("built");
        cache.entry("kind", "b", soon(&cancel), never).expect("used");
        // The clock of the file system is too coarse to order uses within a test.
        for (age_s, text) in [(9, "a"), (8, "c")] {
            let complete = cache.folder.join("kind").join(name_of(text)).join(COMPLETE);
            let file = OpenOptions::new().append(true).open(complete).expect("the entry");
            let used = file.metadata().and_then(|data| data.modified()).expect("a time");
            file.set_modified(used - Duration::from_secs(age_s)).expect("set");
        }
        build("d").expect("built");
        assert_eq!(["a", "b", "c", "d"].map(exists), [true, true, false, true]);
        drop(in_use);
        build("e").expect("built");
        assert_eq!(["a", "b", "d", "e"].map(exists), [false, true, true, true]);
    }

    #[test]
    fn a_stop_and_the_deadline_end_the_wait_for_another_build() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let waited = cache.entry("kind", "text", soon(&cancel), |folder| {
            let passed = Until { cancel: &cancel, deadline: Instant::now() };
            let other = cache.entry("kind", "text", passed, never);
            assert_eq!(other.expect_err("held"), Failure::Timeout);
            cancel.request(StopReason::Requested);
            let other = cache.entry("kind", "text", soon(&cancel), never);
            assert_eq!(other.expect_err("held"), Failure::Stopped(StopReason::Requested));
            filled(1)(folder)
        });
        waited.expect("built");
    }

    #[test]
    fn an_incomplete_entry_is_rebuilt() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let incomplete = cache.folder.join("kind").join(name_of("text"));
        tree::create_private(&incomplete).expect("created");
        fs::write(incomplete.join("rest"), "").expect("written");
        let entry = cache.entry("kind", "text", soon(&cancel), filled(1)).expect("built");
        assert!(!entry.path.join("rest").exists());
    }

    #[test]
    fn the_cache_is_private_to_its_user() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let entry = cache.entry("kind", "text", soon(&cancel), filled(1)).expect("built");
        for folder in [&entry.path, &cache.folder, &cache.folder.join("kind")] {
            assert_eq!(fs::metadata(folder).expect("a folder").mode() & 0o777, 0o700);
        }
    }
}
